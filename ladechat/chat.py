"""A conversation with a live engine: questions go to it, its events to the screen and into a recording."""

import gc
from collections.abc import Callable

import msgspec
from msgspec.structs import asdict
from textual import on, work
from textual.reactive import reactive
from textual.widget import Widget

from ladechat.protocol import (
    Asked,
    Command,
    Configure,
    Event,
    Failed,
    Header,
    Loading,
    Ready,
    Settings,
    SettingsApplied,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.conversation import Conversation
from ladechat.session.live import EngineOptions
from ladechat.session.pacing import Pacer
from ladechat.session.recording import Recorder
from ladechat.session.signals import leave_on_signals
from ladechat.session.source import EngineSource
from ladechat.session.watch import Watch
from ladechat.viewer import FRAMES_PER_SECOND, Viewer
from ladechat.widgets.prompt import Prompt
from ladechat.widgets.side import CHOSEN_BY_AUTO
from ladechat.widgets.slider import Slider
from ladechat.widgets.transcript import Transcript

PATIENCE_LOADING = 60.0
PATIENCE_ANSWERING = 30.0
"""Seconds without a word from the engine, after which the status line says so."""
ENDED = "The engine has ended."
RESTART = "The conversation is still here; F5 starts the engine again."
DOWNLOAD_STOPPED = "The download was stopped; what has come is kept."

NewEngine = Callable[[Settings], EngineSource]
"""Makes an engine with these settings; called at the start, and for each restart."""


class Chat(Viewer):
    """What happens between the user, an engine and the screen; `LadechatApp` says which keys do what.

    Args:
        new_engine: makes the source of events.
        settings: what the decoder starts with.
        conversation: what is sent with each question.
        welcome: said in the transcript before anything else.
        model: the name that a recording is filed under.
        recorder: what writes the session down; a recording may have been begun already.
    """

    answering: reactive[bool] = reactive(False)

    def __init__(
        self,
        new_engine: NewEngine,
        settings: Settings,
        conversation: Conversation,
        welcome: str = "",
        model: str = EngineOptions.model,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(settings, welcome)
        self._new_engine = new_engine
        self._engine: EngineSource | None = None
        self._wanted = settings
        self._made_smaller = False
        self._conversation = conversation
        self._model = model
        self._recorder = recorder or Recorder()
        self._queued: list[str] = []
        self._pacer = Pacer()
        self._watch = Watch()
        self._in_turn = False
        self._restarting = False
        self._downloading = False
        self._loading = True
        self._warned = False
        self._plain_only: str | None = None

    def controls(self) -> Widget:
        return Prompt(id="prompt")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(Prompt).focus()
        self._show_recording()
        leave_on_signals(lambda code: self.exit(code, return_code=code))
        self.set_interval(1 / FRAMES_PER_SECOND, self._frame)
        self.set_interval(1.0, self._look_for_silence)
        self._engine = self._new_engine(self._wanted)
        self.call_after_refresh(self._after_first_frame, self._engine)

    # --- the engine ---------------------------------------------------------------------------------------------------

    def _after_first_frame(self, engine: EngineSource) -> None:
        """Start the engine, which takes commands already, now that the screen is there."""
        gc.enable()
        if engine is self._engine:
            self._run_engine(engine, None)

    def _start_engine(self) -> None:
        """Put a new engine in the place of the old one. Commands may be sent to it at once."""
        old, self._engine = self._engine, self._new_engine(self._wanted)
        self._loading = True
        self._watch.heard()
        self.presenter.say("starting the engine …")
        self._run_engine(self._engine, old)

    def _look_for_silence(self) -> None:
        """Say so when the engine should have said something, and has not for long."""
        self._watch.patience = None
        if self._engine is not None and not self._restarting:
            self._watch.patience = PATIENCE_LOADING if self._loading else PATIENCE_ANSWERING if self.answering else None
        silence = self._watch.silence()
        if silence is not None:
            if self._engine is not None and not self._warned:
                self._engine.ask_where()
            self.presenter.warn(f"no word from the engine for {silence:.0f} s · F5 starts it again")
            self._warned = True
        elif self._warned:
            self.presenter.warn("")
            self._warned = False

    @work(exclusive=True, group="engine")
    async def _run_engine(self, engine: EngineSource, old: EngineSource | None) -> None:
        """End the old engine, start the new one, and pass on what it says, until it ends."""
        if old is not None:
            self._restarting = True
            try:
                await old.close()
            finally:
                self._restarting = False
        told_why = False
        try:
            await engine.start()
            async for event in engine.events():
                self._watch.heard()
                self._record(event)
                self._pacer.put(event)
                told_why = isinstance(event, Failed) and event.fatal
            await engine.close()
            message, hint = (DOWNLOAD_STOPPED, "F5 goes on with it.") if self._downloading else (ENDED, RESTART)
        except OSError as error:
            message, hint = f"The engine could not be run: {error}.", RESTART
        self._engine = None
        if not told_why:
            self._add(Failed(code="internal", message=message, hint=hint, fatal=True))

    async def on_unmount(self) -> None:
        """However the app ends, the engine ends first, and then the recording."""
        if self._engine is not None:
            await self._engine.close()
        self._end_recording()

    def _send(self, command: Command) -> None:
        if self._engine is not None:
            self.run_worker(self._engine.send(command), group="commands")

    # --- events -------------------------------------------------------------------------------------------------------

    def _add(self, event: Event) -> None:
        """Put an event of our own into the stream, as if the engine had said it."""
        self._record(event, own=True)
        self._pacer.put(event)

    def _add_at_once(self, event: Event) -> None:
        """As `_add`, on the screen before the next frame: the user has just pressed a key."""
        self._add(event)
        self._take(self._pacer.drain())

    def _frame(self) -> None:
        """Show what is due: the transcript takes all steps of a frame in one go, panels repaint at their own pace."""
        if self.is_running:  # the widgets go before the timer does
            self._take(self._pacer.frame())

    def _take(self, events: list[Event]) -> None:
        self.presenter.show(events)
        for event in events:
            self._react(event)

    def _react(self, event: Event) -> None:
        """What follows from an event besides what is on the screen."""
        match event:
            case Header():
                self._downloading, self._loading = False, True
            case Ready():
                self._plain_only = event.plain_only
                self._downloading = self._loading = False
                if not self.answering:
                    self._ask_queued()
            case Loading():
                self._downloading = event.total_bytes is not None
            case TurnStarted():
                self._in_turn = True
            case TurnFinished():
                self._in_turn = False
                self._conversation.answered(event)
                self._next_question()
            case SettingsApplied() if self._made_smaller:
                self._wanted, self._made_smaller = event.settings, False
            case Failed():
                self._made_smaller = event.code == "out_of_memory" and not event.fatal
                self._in_turn = self._in_turn and not event.fatal
                if event.fatal or (event.turn is not None and not self._in_turn):  # else the end of the turn follows
                    self._next_question(answer_more=not event.fatal)

    def _next_question(self, answer_more: bool = True) -> None:
        """After an answer, or for want of one: a question that got none goes back to the prompt."""
        self.answering = False
        unanswered = self._conversation.give_up()
        if unanswered is not None and self._queued and not answer_more:
            self._queued.insert(0, unanswered)  # what follows it in the queue may refer to it
        elif unanswered is not None:
            self.query_one(Prompt).offer(unanswered)
        if answer_more:
            self._ask_queued()

    def _ask_queued(self) -> None:
        if self._queued:
            self._ask(self._queued.pop(0))

    # --- questions ----------------------------------------------------------------------------------------------------

    @on(Prompt.Sent)
    def _take_question(self, event: Prompt.Sent) -> None:
        if self._engine is None:
            self.query_one(Prompt).offer(event.text)
            self.notify("The engine has ended. F5 starts it again.", severity="warning")
            return
        self.query_one(Transcript).anchor()
        if self.answering:
            self._queued.append(event.text)
            self.notify("Sent as soon as this answer has ended.")
        else:
            self._ask(event.text)

    def _ask(self, text: str) -> None:
        """Show the question and send it. An engine that still loads answers it when it has loaded."""
        self.answering = True
        command = self._conversation.ask(text)
        self._watch.heard()
        self._send(command)
        self._add_at_once(Asked(turn=command.turn, text=text))

    @on(Slider.Changed)
    def _configure(self, event: Slider.Changed) -> None:
        pins = self._wanted.auto and event.slider.setting in CHOSEN_BY_AUTO
        pinned = {"auto": False} if pins else {}
        self._wish(msgspec.convert({event.slider.setting: event.slider.number, **pinned}, Configure))

    def _wish(self, change: Configure) -> None:
        """Ask for other settings. An engine that is started later begins with them; what holds, its events say."""
        given = {name: value for name, value in asdict(change).items() if value is not None}
        self._wanted = msgspec.structs.replace(self._wanted, **given)
        self._send(change)

    # --- the recording ------------------------------------------------------------------------------------------------

    def _record(self, event: Event, *, own: bool = False) -> None:
        try:
            (self._recorder.added if own else self._recorder.heard)(event)
        except OSError as error:
            self._recording_failed(error)

    def _end_recording(self) -> None:
        try:
            self._recorder.stop()
        except OSError as error:
            self._recording_failed(error)
        if self.is_running:
            self._show_recording()

    def _recording_failed(self, error: OSError) -> None:
        if self.is_running:
            why = f"The recording has ended: {error.strerror or error}. What was written before is kept."
            self.notify(why, severity="error", timeout=10)
            self._show_recording()

    def _show_recording(self) -> None:
        self.query_one("#recording").display = self._recorder.path is not None
