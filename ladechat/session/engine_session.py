"""A session with an engine: its state, its conversation, and its events on their way to the screen.

It knows no screen: `Listener` is what it needs of one. When an engine has ended, another takes its place in the same
session, with the settings requested last. `ladechat.session.engine_run` runs a single engine.
"""

from pathlib import Path

from msgspec.structs import replace

from ladechat.protocol import (
    Asked,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    ExchangeRestored,
    Failed,
    Generate,
    Header,
    Loading,
    Ready,
    Settings,
    SettingsApplied,
    Step,
    Stop,
    SystemPrompt,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.conversation import CannotContinue, Conversation, Waiting
from ladechat.session.conversation_file import SavedConversation
from ladechat.session.engines import SessionEngines, WayBack
from ladechat.session.listeners import Listener, ModelListener
from ladechat.session.measuring import Measuring
from ladechat.session.model_trial import NewEngine
from ladechat.session.own_failures import BROKEN_OFF, CALLED_OFF, DOWNLOAD_STOPPED, NOT_CONTINUED, RESTART_HINT
from ladechat.session.race_turns import RaceTurns
from ladechat.session.recording import Recorder
from ladechat.session.state import LOADED, State, Trigger


class EngineSession(SessionEngines):
    """Sends questions, stops and continues answers. Its state follows from the events that were shown.

    Args:
        new_engine: creates the first engine, and each later one.
        settings: the first engine's settings.
        conversation: the conversation that is sent with each question.
        recorder: receives every event; a recording may be running already.
        way_back: the model to return to if the first one cannot be loaded; None: no other.

    Attributes:
        listener: the screen.
        model_listener: the screen for choosing models; None without one.
    """

    def __init__(
        self,
        new_engine: NewEngine,
        settings: Settings,
        conversation: Conversation,
        recorder: Recorder | None = None,
        way_back: WayBack | None = None,
    ) -> None:
        super().__init__(new_engine, settings, way_back)
        self.conversation = conversation
        self.recorder = recorder or Recorder()
        self.listener: Listener | None = None
        self.model_listener: ModelListener | None = None
        self._queue: list[Waiting] = []
        self._held: Generate | None = None
        self._unseen: list[Event] = []
        self._settings_will_shrink = False
        self._eos_ids: list[int] = []
        self._stoppable = False  # whether the current stage of loading can be stopped

    @property
    def model(self) -> str:
        """The name of the model that answers."""
        return self.conversation.model

    @property
    def asking(self) -> bool:
        """Whether a question waits for its answer, or for the rest of it."""
        return self.conversation.pending is not None or self.conversation.continuing

    @property
    def continuing_later(self) -> bool:
        """Whether an answer will be continued once the engine has loaded."""
        return self._held is not None and self.conversation.continuing

    @property
    def can_stop(self) -> bool:
        """Whether there is an answer, a download or a search to stop."""
        stage = self.state is State.DOWNLOADING or (self.state is State.LOADING and self._stoppable)
        return self.asking or bool(self.looking_for) or stage

    @property
    def waiting(self) -> tuple[str, ...]:
        """The queued questions, the next one first."""
        return tuple(waiting.text for waiting in self._queue)

    # --- what the user wants ------------------------------------------------------------------------------------------

    def ask(self, text: str, *, replacing: bool = False) -> None:
        """Show a question and send it. An engine that is still loading answers it after that.

        Args:
            text: the question.
            replacing: whether it replaces the last answered question, if there is one.
        """
        command = self.conversation.ask(text, replacing=replacing)
        if self.conversation.replaces is not None:
            self._add(ExchangeRemoved())
        self._have_answered(command)
        self._add(Asked(turn=command.turn, text=text))

    def go_on(self) -> None:
        """Continue the last answer after its last token, as soon as the engine has loaded.

        Raises:
            CannotContinue: it cannot be continued.
        """
        self._have_answered(self.conversation.go_on(self._eos_ids))
        self.changed()

    def _have_answered(self, command: Generate) -> None:
        """Send a request for an answer. Until the engine has loaded it is held, and can be cancelled."""
        if self.state in LOADED:
            self._send(command)
        else:
            self._held = command

    def _send_held(self) -> None:
        """Send the held request now that the engine has loaded: only now are the tokens known that end an answer."""
        command, self._held = self._held, None
        if command is None:
            return
        if self.conversation.continuing:
            self.conversation.give_up()
            try:
                command = self.conversation.go_on(self._eos_ids)
            except CannotContinue as refused:
                self._add(replace(NOT_CONTINUED, turn=command.turn, message=str(refused), hint="Ask for more."))
                return
        self._send(command)

    def ask_later(self, text: str) -> None:
        """Queue a question; it is asked once no other question waits."""
        self._queue.append(Waiting(text))
        self.changed()

    def take_back_waiting(self) -> Waiting | None:
        """Remove the last question from the queue and return it; None if the queue is empty."""
        self.changed()
        return self._queue.pop() if self._queue else None

    def stop(self) -> None:
        """Stop the answer after the current step, and end a pause; or a download, and with it the engine; or the search
        for another model; or a search of the engine while it loads. An answer that waits for the engine to load is
        cancelled at once.
        """
        if self.state is State.DOWNLOADING:
            self._run.end()
        elif self._held is not None:
            self._add(replace(NOT_CONTINUED if self.conversation.continuing else CALLED_OFF, turn=self._held.turn))
        elif self.looking_for and not self.asking:
            self._end_trial()
        elif self.asking or self.state is State.LOADING:
            self._send(Stop())
            self._move(Trigger.STOP)
            self.set_pace(self.pace.pause(False))  # after the stop, so that no step is taken in between

    def race(self, text: str) -> Measuring | None:
        """Return a race of decoders on a text, or without one on the last question; None if there is neither.

        They take turns in this engine, whose KV cache and learnt n-grams are the same before and after the race.
        """
        command = self.conversation.again(text)
        if command is None:
            return None
        return Measuring(RaceTurns(self), command.messages, max_new_tokens=command.max_new_tokens)

    def clear(self) -> None:
        """Start a new conversation."""
        system = self.conversation.system
        self.conversation.restart()
        self._queue.clear()
        self._add(ConversationCleared())
        self._show_other_system(system)

    def open(self, saved: SavedConversation) -> None:
        """Continue a saved conversation in place of this one."""
        system = self.conversation.system
        self._queue.clear()
        self._add(ConversationOpened(exchanges=self.conversation.open(saved)))
        self._show_other_system(system)

    def _show_other_system(self, before: str) -> None:
        """Show the system prompt of a new conversation, if it differs from the one before."""
        if self.conversation.system != before:
            self._add(SystemPrompt(text=self.conversation.system))

    def instruct(self, system: str) -> None:
        """Set the system prompt, from the next question on."""
        self.conversation.instruct(system)
        self._add(SystemPrompt(text=system))

    async def close(self) -> None:
        """End the engine, then the recording. An unfinished answer is saved as if it had been stopped."""
        self._queue.clear()
        self._show_all()
        self.conversation.break_off(self.requested.decoder)
        await super().close()
        self.stop_recording()

    def stop_recording(self) -> Path | None:
        """End the recording; return its file, None if there is none."""
        try:
            return self.recorder.stop()
        except OSError as error:
            self._recording_failed(error)
            return None

    # --- events -------------------------------------------------------------------------------------------------------

    def frame(self) -> None:
        """Show the events that have arrived since the last frame, all at once."""
        self._show_all()

    def _came(self, event: Event) -> None:
        if self._of_race(event):
            self.recorder.leave_out()
        else:
            self._record(event)
            self._unseen.append(event)
            self.changed()

    def _ended(self, why: str | None) -> None:
        self._end_race()
        self._show_all()
        self.changed()
        if why is not None:
            hint = RESTART_HINT
            if self.state is State.DOWNLOADING:
                why = DOWNLOAD_STOPPED
                hint = f"{'F5' if self._way_back is None else f'/model {self.model}'} goes on with it."
            self._add(Failed(code="internal", message=why, hint=hint, fatal=True))

    def _leaving(self) -> None:
        self._show_all()  # the screen shows all that is in the recording
        if self.asking:
            self._add(BROKEN_OFF)

    def _model_taken(self, model: str, replaced: str = "") -> None:
        self.conversation.use_model(model)
        if self.model_listener is not None:
            self.model_listener.model_taken(model, replaced)

    def _model_refused(self, model: str, why: Failed) -> None:
        if self.model_listener is not None:
            self.model_listener.model_refused(model, why)

    def _add(self, event: Event) -> None:
        """Add an event of the session itself to the stream, and show it at once."""
        self._record(event, own=True)
        self._unseen.append(event)
        self._show_all()
        self.changed()

    def _show_all(self) -> None:
        events, self._unseen = self._unseen, []
        if events and self.listener is not None:
            self.listener.show(events)
        for event in events:
            self._react(event)

    def _record(self, event: Event, *, own: bool = False) -> None:
        try:
            (self.recorder.record_own if own else self.recorder.record)(event)
        except OSError as error:
            self._recording_failed(error)

    def _recording_failed(self, error: OSError) -> None:
        if self.listener is not None:
            self.listener.recording_failed(error)

    def _react(self, event: Event) -> None:
        """Update the session after an event, apart from the screen."""
        match event:
            case Header():
                self._move(Trigger.HEADER)
            case Loading():
                self._stoppable = event.stoppable
                self._move(Trigger.LOAD if event.total_bytes is None else Trigger.DOWNLOAD)
            case Ready():
                self._move(Trigger.READY)
                self._way_back, self._eos_ids = None, event.eos_ids
                self._send_held()
                if not self.asking:
                    self._ask_next()
            case TurnStarted():
                self._move(Trigger.TURN_STARTED)
                self.conversation.started(event)
            case Step():
                self._step_due = False
                self.conversation.stepped(event)
            case TurnFinished():
                self._step_due = False
                self._move(Trigger.TURN_FINISHED)
                self.conversation.answered(event, self.requested.decoder)
                self._give_up()
                self._ask_next()
            case SettingsApplied() if self._settings_will_shrink:
                self._settings_will_shrink = False
                parameters = {**self.requested.parameters, **event.settings.parameters}
                self.requested = replace(event.settings, parameters=parameters)
            case Failed():
                self._react_to_failure(event)

    def _react_to_failure(self, event: Failed) -> None:
        self._settings_will_shrink = event.code == "out_of_memory" and not event.fatal
        if event.fatal:
            self._move(Trigger.END)
            self._give_up(keep_order=True)
            if event is not BROKEN_OFF:
                self._go_back(event)
        elif event.turn is not None and self.state not in (State.ANSWERING, State.STOPPING):  # else its end follows
            self._give_up()
            self._ask_next()

    def _give_up(self, *, keep_order: bool = False) -> None:
        """Give an unanswered question back to the user or the queue's front; show again what it was to replace."""
        self._held, replaced = None, self.conversation.replaces
        question = self.conversation.give_up()
        if replaced is not None:
            self._add(ExchangeRestored(exchange=replaced))
        if question is None:
            return
        if keep_order and self._queue:
            self._queue.insert(0, Waiting(question, replaced is not None))
        elif self.listener is not None:
            self.listener.give_back(question, replacing=replaced is not None)

    def _ask_next(self) -> None:
        if self._queue:
            waiting = self._queue.pop(0)
            self.ask(waiting.text, replacing=waiting.replacing)
