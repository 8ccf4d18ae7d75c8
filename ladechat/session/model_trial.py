"""Looking for the files of another model while the present one goes on answering, so that a mistyped name changes
nothing.
"""

from collections.abc import Callable

from ladechat.protocol import Event, Failed, Header, Loading, Settings
from ladechat.session.engine_run import EngineRun
from ladechat.session.source import EngineSource

NewEngine = Callable[[Settings], EngineSource]
"""Makes an engine that will start with these settings."""


class ModelTrial:
    """An engine that looks for the files of its model. Before they are found it takes hardly any memory, and its events
    are not shown.

    Args:
        model: its name.
        new_engine: makes its engine, and each one after it.
        found: told once, when the files are there, or begin to come.
        refused: told once, when the model cannot be had, and why.

    Attributes:
        settings: what its engine starts with.
        run: the engine.
        events: what it has said so far.
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
    """Does an engine say this before it knows whether there is such a model?"""
    first_stage = isinstance(event, Loading) and event.stage == 1 and event.total_bytes is None
    return first_stage or isinstance(event, Header)
