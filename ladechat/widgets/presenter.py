"""What the screen shows follows from the events alone: live and replayed, the same code draws the same."""

from collections.abc import Iterable
from typing import NamedTuple

from ladechat.protocol import (
    Asked,
    ConversationCleared,
    Event,
    Failed,
    HistoryTrimmed,
    Loading,
    Prefilling,
    Ready,
    Settings,
    SettingsApplied,
    Step,
    Tuned,
    TurnFinished,
    TurnStarted,
)
from ladechat.widgets.side import SidePanels
from ladechat.widgets.status_line import StatusLine
from ladechat.widgets.transcript import Transcript
from ladechat.widgets.wording import (
    describe_decoder,
    describe_failure,
    describe_finish,
    describe_loading,
    describe_memory,
    describe_model,
    describe_trimming,
    introduce,
)

STATUS_PARTS = ("model", "device", "dtype", "facts", "memory")


class Bookmark(NamedTuple):
    """The screen before a turn starts, which clears the panels: what is needed to come back to it."""

    blocks: int
    model: str
    status: tuple[str, ...]
    activity: str


class Presenter:
    """Draws events on the conversation, the panels beside it and the status line."""

    def __init__(self, transcript: Transcript, side: SidePanels, status: StatusLine, welcome: str = "") -> None:
        self._transcript = transcript
        self._side = side
        self._status = status
        self._welcome = welcome
        self._model = "model"
        self._in_turn = False
        self._activity = ""

    def begin(self, settings: Settings) -> None:
        """The screen before the first event."""
        self._model, self._in_turn = "model", False
        self._transcript.clear()
        self._side.clear()
        for part in STATUS_PARTS:
            setattr(self._status, part, "")
        self._show_settings(settings)
        if self._welcome:
            self._transcript.notice(self._welcome)
        self.say("starting the engine …")

    def bookmark(self) -> Bookmark:
        """Where the screen is now. Taken before a turn starts, it is enough to return to."""
        status = tuple(getattr(self._status, part) for part in STATUS_PARTS)
        return Bookmark(self._transcript.blocks, self._model, status, self._activity)

    def return_to(self, bookmark: Bookmark) -> None:
        """Be where the screen was; the turn that starts there is to be shown next."""
        self._model, self._in_turn = bookmark.model, False
        self._transcript.keep(bookmark.blocks)
        for part, text in zip(STATUS_PARTS, bookmark.status, strict=True):
            setattr(self._status, part, text)
        self.say(bookmark.activity)

    def say(self, activity: str) -> None:
        """Show what is being done."""
        self._activity = activity
        self._status.activity = activity

    def warn(self, warning: str) -> None:
        """Show something in place of what is being done, until `warn("")` or the next thing that is said."""
        self._status.activity = warning or self._activity

    def show(self, events: Iterable[Event]) -> None:
        """Draw events in their order; steps that follow each other, in one go."""
        steps: list[Step] = []
        for event in events:
            if isinstance(event, Step):
                steps.append(event)
                continue
            self._show_steps(steps)
            steps = []
            self._show(event)
        self._show_steps(steps)

    def _show_steps(self, steps: list[Step]) -> None:
        if steps:
            self._transcript.add_steps(steps)
            self._side.show_steps(steps)

    def _show(self, event: Event) -> None:
        match event:
            case Asked():
                self._transcript.start("user", "You")
                self._transcript.add(event.text)
            case Loading():
                self.say(describe_loading(event))
            case Ready():
                self._show_ready(event)
            case SettingsApplied():
                self._show_settings(event.settings)
            case HistoryTrimmed():
                self._transcript.notice(describe_trimming(event))
            case TurnStarted():
                self._in_turn = True
                self._show_settings(event.settings)
                self._side.clear()
                self._transcript.start("model", self._model)
                self.say("reading the question …")
            case Prefilling():
                self.say("answering …")
                if event.done_tokens < event.total_tokens:
                    self.say(f"reading the question: {event.done_tokens:,} of {event.total_tokens:,} tokens …")
            case Tuned():
                self._side.show_tuned(event)
            case TurnFinished():
                self._in_turn = False
                self._side.show_finished(event)
                self._status.memory = describe_memory(event.memory)
                self._transcript.notice(describe_finish(event))
                self.say("ready")
            case Failed():
                self._show_failure(event)
            case ConversationCleared():
                self._transcript.clear()
                self._side.clear()

    def _show_ready(self, event: Ready) -> None:
        self._model = "demo model" if event.model == "demo" else event.model.rstrip("/").rsplit("/", 1)[-1]
        status = self._status
        status.model, status.device, status.dtype = self._model, event.device, event.dtype
        status.facts, status.memory = describe_model(event), describe_memory(event.memory)
        self._side.show_context(event.context_length)
        self._show_settings(event.settings)
        if event.model != "demo":
            self._transcript.notice(introduce(event))
        self.say("ready")

    def _show_settings(self, settings: Settings) -> None:
        self._side.show_settings(settings)
        self._status.decoder = describe_decoder(settings)

    def _show_failure(self, event: Failed) -> None:
        self._transcript.notice(describe_failure(event), "alert")
        if event.fatal:
            self._in_turn = False
            self.say("the engine has ended · F5 starts it again")
        elif event.turn is not None and not self._in_turn:  # else the end of the turn follows
            self.say("ready")
