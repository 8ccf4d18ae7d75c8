"""The search for the files of another model while the present one answers, so that a wrong name changes nothing."""

from collections.abc import Callable

from ladechat.protocol import Event, Failed, Header, Loading, Settings
from ladechat.session.engine_run import EngineRun
from ladechat.session.source import EngineSource

NewEngine = Callable[[Settings], EngineSource]
"""Creates an engine that will start with these settings."""


class ModelTrial:
    """An engine that looks for the files of its model. Until they are found it takes hardly any memory, and its events
    are not shown.

    Args:
        model: the model's name.
        new_engine: creates its engine, and each later one.
        found: called once, when the files were found, or their download begins.
        refused: called once, when the model cannot be used, with the reason.

    Attributes:
        settings: the settings that its engine starts with.
        run: the engine.
        events: its events so far.
    """

    def __init__(
        self,
        model: str,
        new_engine: NewEngine,
        settings: Settings,
        found: "Callable[[ModelTrial], None]",
        refused: "Callable[[ModelTrial, Failed], None]",
    ) -> None:
        self.model = model
        self.new_engine = new_engine
        self.settings = settings
        self.events: list[Event] = []
        self.run = EngineRun(new_engine(settings), self._came, self._ended)
        self._found = found
        self._refused = refused

    def _came(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Failed) and event.fatal:
            self._refused(self, event)
        elif not _is_looking(event):
            self._found(self)

    def _ended(self, why: str | None) -> None:
        if why is not None:
            hint = "/model takes another one, or this one once more."
            self._refused(self, Failed(code="internal", message=why, hint=hint, fatal=True))


def _is_looking(event: Event) -> bool:
    """Return whether an engine sends this event before it knows whether its model exists."""
    first_stage = isinstance(event, Loading) and event.stage == 1 and event.total_bytes is None
    return first_stage or isinstance(event, Header)
