"""The engine of a session, and all that may take its place: a new one, that of another model, or the model before.

A race borrows it between two answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msgspec.structs import asdict, replace

from ladechat.protocol import Command, Configure, Event, Failed, Header, Loading, Pace, Ready, Settings, Watch
from ladechat.session.change import ViewerPace, configured, settings_for
from ladechat.session.conversations.conversation import Conversation
from ladechat.session.engine import LOADED, SILENCE_SECONDS, EngineRun, NewEngine, State
from ladechat.session.measuring import REPLACED, RaceTurns

BROKEN_OFF = Failed(
    code="internal",
    message="This answer was broken off: the engine is started again.",
    hint="Its question is kept.",
    fatal=True,
)


@dataclass(frozen=True)
class WayBack:
    """The model and decoder to return to if the chosen model cannot be loaded."""

    model: str
    new_engine: NewEngine
    decoder: str


class ModelTrial(EngineRun):
    """An engine that looks for the files of its model while another one answers, so that a wrong name changes nothing.

    Until they are found it takes hardly any memory, and its events are not shown.

    Args:
        new_engine: creates its engine, and each later one.
        found: called when the files were found, or their download begins. Further events go to the new `came`.
        refused: called once, when the model cannot be used, with the reason.

    Attributes:
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
        super().__init__(new_engine(settings), self._look_at, self._refuse_after_end)
        self.model = model
        self.new_engine = new_engine
        self.settings = settings
        self.events: list[Event] = []
        self._found = found
        self._refused = refused

    def _look_at(self, event: Event) -> None:
        self.events.append(event)
        looking = isinstance(event, Loading) and event.stage == 1 and event.total_bytes is None
        if isinstance(event, Failed) and event.fatal:
            self._refused(self, event)
        elif not looking and not isinstance(event, Header):
            self._found(self)

    def _refuse_after_end(self, why: str | None) -> None:
        if why is not None:
            hint = "/model takes another one, or this one once more."
            self._refused(self, Failed(code="internal", message=why, hint=hint, fatal=True))


class ReplaceableEngine(ABC):
    """One engine after another, each with what the user has requested. The subclass acts on their events.

    Args:
        new_engine: creates the first engine, and each later one.
        way_back: the model to return to if the first one cannot be loaded; None: no other.

    Attributes:
        state: see `State`.
        requested: the settings that the user has requested; the next engine starts with them.
        pace: the requested pace.
        changed: called when there are events to show, or when other state of the session may have changed.
        model_taken: called when another model answers from now on, with its name and that of the decoder that had to
            be replaced for it, "" if none was.
        model_refused: called when a model cannot be used, with its name and the reason; the previous one continues.
    """

    def __init__(
        self, new_engine: NewEngine, settings: Settings, conversation: Conversation, way_back: WayBack | None
    ) -> None:
        self.state = State.STARTING
        self.requested = settings
        self.pace = ViewerPace()
        self.conversation = conversation
        self.changed: Callable[[], None] = lambda: None
        self.model_taken: Callable[[str, str], None] = lambda *_: None
        self.model_refused: Callable[[str, Failed], None] = lambda *_: None
        self._new_engine = new_engine
        self._run = EngineRun(new_engine(settings), self._came, self._ended)
        self._trial: ModelTrial | None = None
        self._way_back = way_back
        self._watched = Watch()
        self._ready: Ready | None = None
        self._race: RaceTurns | None = None
        self._step_due = False  # in a paused answer, in which the engine sends nothing else

    @property
    def asking(self) -> bool:
        """Whether a question waits for its answer, or for the rest of it."""
        return self.conversation.pending is not None or self.conversation.continuing

    def _move(self, to: State, *before: State) -> None:
        """Change the state; if any `before` are given, only from one of these."""
        if not before or self.state in before:
            self.state = to
        self.changed()

    @abstractmethod
    def frame(self) -> None:
        """Show the events that have arrived since the last frame, and react to them."""

    @abstractmethod
    def _came(self, event: Event) -> None:
        """Take an event of the engine."""

    @abstractmethod
    def _ended(self, why: str | None) -> None:
        """Report that the engine has ended by itself, with the reason; None if its last event gave it."""

    @abstractmethod
    def _add(self, event: Event) -> None:
        """Add an event of the session itself to the stream, and show it at once."""

    # --- start and end ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first engine. Commands that were sent before reach it."""
        self._run.start()

    def restart(self) -> bool:
        """Replace this engine by a new one; return False while an earlier one is still being ended."""
        if self.state is State.RESTARTING:
            return False
        before = self._leave_engine()
        self._run = EngineRun(self._new_engine(self.requested), self._came, self._ended)
        self._greet()
        self._run.start(after=before, began=partial(self._move, State.STARTING, State.RESTARTING))
        return True

    def _leave_engine(self) -> EngineRun:
        """Take no more events from the present engine, and return it; it still has to be closed."""
        if self._race is not None:
            self._race.break_off(REPLACED)
        self.frame()  # the screen shows all that is in the recording
        if self.asking:
            self._add(BROKEN_OFF)
        self._ready, self._step_due = None, False
        self._run.let_go()
        self._move(State.RESTARTING)
        return self._run

    def _greet(self) -> None:
        """Send a new engine the pace that the previous one had, and what is watched."""
        self.pace = self.pace.pause(False)  # the pause was for the answer that is broken off
        self._send_view(self.pace.command(), self._watched)

    def _send_view(self, pace: Pace, watched: Watch) -> None:
        """Send the engine a pace and what is watched, as far as the requested ones are not the default."""
        if self.pace != ViewerPace():
            self._run.send(pace)
        if self._watched != Watch():
            self._run.send(watched)

    async def close(self) -> None:
        """End the engine, and the trial of another model."""
        if self._trial is not None:
            await self._trial.close()
        await self._run.close()

    @property
    def first_words(self) -> str:
        """What the engine's command says instead of beginning as an engine; "" if it says nothing, or has begun."""
        return self._run.first_words if self.state is State.STARTING else ""

    def stuck_for(self) -> float | None:
        """Return the seconds of silence of an engine that should have sent something; None if it is well, or paused."""
        return self._run.silent_for(self.most_silence)

    @property
    def most_silence(self) -> float | None:
        """The longest acceptable silence of the engine, in seconds; None where nothing is expected of it."""
        waits = self.pace.paused and self.asking and not self._step_due
        if waits and not self.racing and self.state in (State.READY, State.ANSWERING):
            return None
        if self.state is State.READY and (self.asking or self.racing):
            return SILENCE_SECONDS[State.ANSWERING]
        return SILENCE_SECONDS.get(self.state)

    # --- a race in this engine ----------------------------------------------------------------------------------------

    @property
    def racing(self) -> bool:
        """Whether a race uses the engine; also after the user has left it, while its last pass is running."""
        return self._race is not None

    def _lend(self, turns: RaceTurns) -> Ready | None:
        """Lend the engine to a race, at full speed and unwatched; return its ready event, None if it loads."""
        self._race = turns
        self._run.reset_silence()
        if self.state is State.ENDED:
            turns.break_off()
            return None
        self._send_view(Pace(), Watch())
        return None if self._ready is None else replace(self._ready, settings=self.requested)

    def _race_over(self) -> None:
        """Take the engine back from a race. Commands that were deferred are sent now."""
        race, self._race = self._race, None
        self._send_view(self.pace.command(), self._watched)
        for command in race.deferred if race is not None else ():
            self._run.send(command)

    def _send(self, command: Command, *, of_race: bool = False) -> None:
        """Send a command that starts or ends an answer; during a race one of the chat is deferred to its end."""
        self._run.reset_silence()
        if self._race is not None and not of_race:
            self._race.deferred.append(command)
        else:
            self._run.send(command)

    # --- another model ------------------------------------------------------------------------------------------------

    def use_model(self, model: str, new_engine: NewEngine) -> bool:
        """Switch to another model once its files are found; return False while an earlier engine is being ended.

        Until then, and if there is no such model, the present one continues. If the model is found but cannot be
        loaded, the session returns to the present one.
        """
        if self.state is State.RESTARTING:
            return False
        self._end_trial()
        settings = settings_for(model, self.requested, self.conversation.model)
        self._trial = ModelTrial(model, new_engine, settings, self._take_model, self._refuse_model)
        self._trial.start()
        self.changed()
        return True

    @property
    def looking_for(self) -> str:
        """The model whose files are being looked for; "" if there is none."""
        return "" if self._trial is None else self._trial.model

    def _end_trial(self) -> None:
        """Cancel the search for another model."""
        if self._trial is not None:
            self._run.end_other(self._trial)
            self._trial = None
            self.changed()

    def _take_model(self, trial: ModelTrial) -> None:
        """Replace this engine by that of another model, which is running already."""
        if trial is not self._trial:
            return
        self._trial = None
        if self.state in LOADED:
            self._way_back = WayBack(self.conversation.model, self._new_engine, self.requested.decoder)
        decoder = self.requested.decoder
        self.requested = settings_for(trial.model, self.requested, self.conversation.model)
        before = self._leave_engine()
        self._run, self._new_engine = trial, trial.new_engine
        self._run.came, self._run.ended = self._came, self._ended
        self._run.end_other(before)
        self._move(State.STARTING)
        self._greet()
        if self.requested != trial.settings:  # they were changed during the search for its files
            self._run.send(Configure(**asdict(self.requested)))
        self._answer_with(trial.model, decoder if decoder != self.requested.decoder else "")
        for event in trial.events:
            self._came(event)

    def _answer_with(self, model: str, replaced: str = "") -> None:
        self.conversation.use_model(model)
        self.model_taken(model, replaced)

    def _refuse_model(self, trial: ModelTrial, why: Failed) -> None:
        if trial is self._trial:
            self._end_trial()
            self._add(replace(why, fatal=False))  # nothing else of this engine was shown
            self.model_refused(trial.model, why)

    def _return_to_model_before(self, why: Failed) -> None:
        """Return to the previous model if this one has failed to load."""
        way, self._way_back = self._way_back, None
        if way is None:
            return
        refused = self.conversation.model
        self._new_engine, self.requested = way.new_engine, replace(self.requested, decoder=way.decoder)
        self.restart()
        self._answer_with(way.model)
        self.model_refused(refused, why)

    # --- the user's requests ------------------------------------------------------------------------------------------

    def configure(self, change: Configure) -> None:
        """Request other settings. The engine reports which are active then."""
        self.requested = configured(self.requested, change)
        self._run.send(change)

    def set_pace(self, pace: ViewerPace) -> None:
        """Set the pace of the engine's steps, in this answer and later ones."""
        if pace != self.pace:
            self.pace = pace
            self._run.reset_silence()
            if not self.racing:
                self._run.send(pace.command())
            self.changed()

    def take_step(self) -> None:
        """Take one step of a paused answer."""
        self._step_due = True
        self._run.reset_silence()
        self._run.send(Pace(steps_per_second=0.0, step=True))

    def watch(self, watched: Watch) -> None:
        """Set the details that are shown; later engines receive the same."""
        if watched != self._watched:
            self._watched = watched
            if not self.racing:
                self._run.send(watched)
