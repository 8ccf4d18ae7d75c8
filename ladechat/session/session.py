"""A session with an engine: its questions and answers, its state, and its events on their way to the screen.

It knows no screen: a screen sets what it calls. `ladechat.session.replaceable_engine` has what may take the place of
the engine in the same session.
"""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from ladechat.protocol import (
    Asked,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    Failed,
    Generate,
    Header,
    Loading,
    Prefilling,
    Ready,
    Settings,
    SettingsApplied,
    Step,
    Stop,
    SystemPrompt,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.conversations.conversation import CannotContinue, Conversation, Waiting
from ladechat.session.conversations.saved import Branch, SavedConversation
from ladechat.session.engine import LOADED, LOADING, NewEngine, State
from ladechat.session.measuring import Measuring, RaceTurns
from ladechat.session.recordings.recorder import Recorder
from ladechat.session.replaceable_engine import BROKEN_OFF, ReplaceableEngine, WayBack

CALLED_OFF = Failed(
    code="busy",
    message="Not asked: the model was still loading.",
    hint="The question is in the prompt again, or ↑ brings it there.",
)
NOT_CONTINUED = Failed(
    code="busy",
    message="The answer does not go on: the model was still loading.",
    hint="/continue asks for it once more.",
)


class Session(ReplaceableEngine):
    """Sends questions, stops and continues answers. Its state follows from the events that were shown.

    Args:
        new_engine, settings, conversation, way_back: see `ReplaceableEngine`.
        recorder: receives every event; a recording may be running already.
        named_by_engine: whether the engine's header says which model answers, and the first settings, as that of a
            command of the user's.

    Attributes:
        show: called with events to draw, in their order.
        give_back: called with a question that got no answer, to offer it, and the place of what it was to replace.
    """

    def __init__(
        self,
        new_engine: NewEngine,
        settings: Settings,
        conversation: Conversation,
        recorder: Recorder | None = None,
        way_back: WayBack | None = None,
        *,
        named_by_engine: bool = False,
    ) -> None:
        super().__init__(new_engine, settings, conversation, way_back)
        self._named_by_engine = named_by_engine
        self.recorder = recorder or Recorder()
        self.show: Callable[[Sequence[Event]], None] = lambda _: None
        self.give_back: Callable[[str, int | None], None] = lambda *_: None
        self._unseen: list[Event] = []
        self._queue: list[Waiting] = []
        self._held: Generate | None = None
        self._settings_will_shrink = False
        self._eos_ids: list[int] = []
        self._stoppable = False  # whether the current stage of loading can be stopped

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

    def ask(self, text: str, place: int | None = None) -> None:
        """Show a question and send it, see `Conversation.ask`. An engine that still loads answers it after that."""
        command = self.conversation.ask(text, place)
        self._add(*[ExchangeRemoved()] * len(self.conversation.replaced))
        self._have_answered(command)
        self._add(Asked(turn=command.turn, text=text))

    def apply(self, branch: Branch) -> bool:
        """Show another variant of an exchange, or delete one; return whether that has changed anything."""
        left, came = self.conversation.apply(branch)
        self._add(*[ExchangeRemoved()] * left, *came)
        return bool(left or came)

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
            self._move(State.STOPPING, State.ANSWERING)
            self.set_pace(self.pace.pause(False))  # after the stop, so that no step is taken in between

    def race(self, text: str) -> Measuring | None:
        """Return a race of decoders on a text, or without one on the last question; None if there is neither.

        They take turns in this engine, whose KV cache and learnt n-grams are the same before and after the race.
        """
        command = self.conversation.race_command(text)
        if command is None:
            return None
        turns = RaceTurns(self._lend, partial(self._send, of_race=True), self._race_over)
        return Measuring(turns, command.messages, max_new_tokens=command.max_new_tokens)

    def clear(self) -> None:
        """Start a new conversation."""
        system = self.conversation.system
        self.conversation.begin_new()
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
        self.frame()
        self.conversation.save_unfinished(self.requested.decoder)
        await super().close()
        self.recorder.stop()

    # --- events -------------------------------------------------------------------------------------------------------

    def frame(self) -> None:
        """Show the events that have arrived since the last frame, all at once; then react to them.

        The screen calls this as often as it draws, once `changed` has asked for it.
        """
        events, self._unseen = self._unseen, []
        if events:
            self.show(events)
        for event in events:
            self._react(event)

    def _add(self, *events: Event) -> None:
        for event in events:
            self.recorder.record_own(event)
        self._unseen += events
        self.frame()
        self.changed()

    def _came(self, event: Event) -> None:
        if isinstance(event, Header) and self._named_by_engine:
            self.requested = event.settings
            self.conversation.use_model(event.model)
        if isinstance(event, Ready):
            self._ready, self.conversation.server = event, event.server
        if isinstance(event, Failed) and event.fatal:
            self._end_answer()
        if self._race is None or not self._race.take(event):
            self.recorder.record(event)
            self._unseen.append(event)
            self.changed()
        else:  # a turn of a race is neither shown nor recorded
            self.recorder.leave_out()
            self._follow_turn(event)

    def _follow_turn(self, event: Event) -> None:
        """Change the state at the start and the end of a turn."""
        if isinstance(event, TurnStarted):
            self._move(State.ANSWERING, State.READY)
        elif isinstance(event, TurnFinished):
            self._move(State.READY, State.ANSWERING, State.STOPPING)

    def _ended(self, why: str | None) -> None:
        if self._race is not None:
            self._race.break_off()
        self._end_answer()
        self.changed()
        if why is not None:
            hint = "The conversation is still here; F5 starts the engine again."
            if self.state is State.DOWNLOADING:
                why = "The download was stopped; what has come is kept."
                hint = f"{'F5' if self._way_back is None else f'/model {self.conversation.model}'} goes on with it."
            self._add(Failed(code="internal", message=why, hint=hint, fatal=True))

    def _end_answer(self) -> None:
        """Show all that a dead engine has sent. What has come of an answer stays, as if it had been stopped."""
        self.frame()
        half = self.conversation.half_answer()
        if half is not None:
            self._move(State.ENDED)
            self._add(half)

    def _react(self, event: Event) -> None:
        """Update the session after an event, apart from the screen."""
        match event:
            case Header():
                self._move(State.LOADING, State.STARTING)
            case Loading():
                self._stoppable = event.stoppable
                stage = State.LOADING if event.total_bytes is None else State.DOWNLOADING
                self._move(stage, *LOADING)
            case Ready():
                self._move(State.READY, *LOADING)
                self._way_back, self._eos_ids = None, event.eos_ids
                self._send_held()
                if not self.asking:
                    self._ask_next()
            case TurnStarted():
                self._follow_turn(event)
                self.conversation.note(event)
            case Prefilling():
                self.conversation.note(event)
            case Step():
                self._step_due = False
                self.conversation.note(event, slowed=self.pace.rate is not None)
            case TurnFinished():
                self._step_due = False
                self._follow_turn(event)
                self.set_pace(self.pace.pause(False))  # the pause was for this answer
                self.conversation.answered(event, self.requested.decoder)
                self._return_question()
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
            if self.state is not State.RESTARTING:  # of the engine that is being replaced
                self._move(State.ENDED)
            self._return_question(keep_order=True)
            if event is not BROKEN_OFF:  # which an engine that is being replaced leaves, and no fault of the model
                self._return_to_model_before(event)
        elif event.turn is not None and self.state not in (State.ANSWERING, State.STOPPING):  # else its end follows
            self._return_question()
            self._ask_next()

    def _return_question(self, *, keep_order: bool = False) -> None:
        """Return an unanswered question to the prompt; if others wait and keep their order, to the front of the queue.

        What its answer was to replace is shown again. After a whole answer there is nothing to return.
        """
        self._held, replaced = None, self.conversation.replaced
        place = len(self.conversation.exchanges) if replaced else None
        question = self.conversation.give_up()
        if replaced:
            self._add(*replaced)
        if question is None:
            return
        if keep_order and self._queue:
            self._queue.insert(0, Waiting(question, place))
        else:
            self.give_back(question, place)

    def _ask_next(self) -> None:
        if self._queue and self.state is not State.ENDED:
            waiting = self._queue.pop(0)
            self.ask(*waiting)
