"""The engine of a session: it is started, given the user's settings, and replaced by another."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import asdict, replace

from ladechat import catalog
from ladechat.protocol import (
    Command,
    Configure,
    Event,
    Failed,
    Pace,
    Ready,
    Settings,
    TurnFinished,
    TurnStarted,
    Watch,
)
from ladechat.session.engine_run import EngineRun
from ladechat.session.model_trial import ModelTrial, NewEngine
from ladechat.session.pace import ViewerPace
from ladechat.session.race_turns import REPLACED, RaceTurns
from ladechat.session.state import SILENCE_SECONDS, State, Trigger, following


@dataclass(frozen=True)
class WayBack:
    """The model and decoder to return to if the chosen model cannot be loaded."""

    model: str
    new_engine: NewEngine
    decoder: str


class SessionEngines(ABC):
    """One engine after another. Subclasses handle their events.

    Args:
        new_engine: creates the first engine, and each later one.
        settings: the first engine's settings.
        way_back: the model to return to if the first one cannot be loaded; None: no other.

    Attributes:
        state: see `State`.
        requested: the settings that the user has requested; the next engine starts with them.
        pace: the requested pace.
        changed: called when there are events to show, or when other state of the session may have changed.
    """

    def __init__(self, new_engine: NewEngine, settings: Settings, way_back: WayBack | None = None) -> None:
        self.state = State.STARTING
        self.requested = settings
        self.pace = ViewerPace()
        self.changed: Callable[[], None] = lambda: None
        self._new_engine = new_engine
        self._run = EngineRun(new_engine(settings), self._came, self._ended)
        self._trial: ModelTrial | None = None
        self._way_back = way_back
        self._lens = False
        self._ready: Ready | None = None
        self._race: RaceTurns | None = None
        self._after_race: list[Command] = []
        self._step_due = False  # in a paused answer, in which the engine sends nothing else

    # --- for subclasses -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def asking(self) -> bool:
        """Whether a question waits for its answer, or for the rest of it."""

    @property
    @abstractmethod
    def model(self) -> str:
        """The name of the model that answers."""

    @abstractmethod
    def _came(self, event: Event) -> None:
        """Process an event of the engine."""

    @abstractmethod
    def _add(self, event: Event) -> None:
        """Add an event of the session itself to the stream, and show it at once."""

    @abstractmethod
    def _ended(self, why: str | None) -> None:
        """Process the end of the engine, with its reason; None if its last event gave it."""

    @abstractmethod
    def _leaving(self) -> None:
        """Process the events so far before this engine is replaced."""

    @abstractmethod
    def _model_taken(self, model: str, replaced: str = "") -> None:
        """Switch to another model; `replaced` is the decoder that had to be replaced for it, "" if none was."""

    @abstractmethod
    def _model_refused(self, model: str, why: Failed) -> None:
        """Report that a model cannot be used, and that the previous one continues."""

    # --- start and end ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first engine. Commands that were sent before reach it."""
        self._run.start(began=self._began)

    def restart(self) -> bool:
        """Replace this engine by a new one; return False while an earlier one is still being ended."""
        if self.state is State.RESTARTING:
            return False
        before = self._leave_engine()
        self._run = EngineRun(self._new_engine(self.requested), self._came, self._ended)
        self._greet()
        self._run.start(after=before, began=self._began)
        return True

    def _leave_engine(self) -> EngineRun:
        """Take no more events from the present engine, and return it; it still has to be closed."""
        self._end_race(REPLACED)
        self._leaving()
        self._ready, self._step_due = None, False
        self._run.let_go()
        self._move(Trigger.RESTART)
        return self._run

    def _greet(self) -> None:
        """Send a new engine the settings of the view that the previous one had."""
        if self._lens:
            self._run.send(Watch(lens=True))
        self.pace = self.pace.pause(False)  # the pause was for the answer that is broken off
        if self.pace.rate is not None:
            self._run.send(self.pace.command())

    async def close(self) -> None:
        """End the engine, and the trial of another model."""
        if self._trial is not None:
            await self._trial.run.close()
        await self._run.close()

    def _began(self) -> None:
        self._move(Trigger.RESTARTED)

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

    def lend(self, turns: RaceTurns) -> Ready | None:
        """Lend the engine to a race, at full speed and without the lens: see `ladechat.session.race_turns.Lender`."""
        self._race = turns
        self._run.restart_silence()
        if self.state is State.ENDED:
            turns.break_off()
            return None
        if self.pace != ViewerPace():
            self._run.send(Pace())
        if self._lens:
            self._run.send(Watch(lens=False))
        return None if self._ready is None else replace(self._ready, settings=self.requested)

    def send_for_race(self, command: Command) -> None:
        """Send a command of the race: see `ladechat.session.race_turns.Lender`."""
        self._run.restart_silence()
        self._run.send(command)

    def race_over(self) -> None:
        """Take the engine back: see `ladechat.session.race_turns.Lender`. Commands that were deferred are sent now."""
        self._race = None
        if self.pace != ViewerPace():
            self._run.send(self.pace.command())
        if self._lens:
            self._run.send(Watch(lens=True))
        commands, self._after_race = self._after_race, []
        for command in commands:
            self._run.send(command)

    def _send(self, command: Command) -> None:
        """Send a command that starts or ends an answer; during a race it is deferred to its end."""
        self._run.restart_silence()
        if self.racing:
            self._after_race.append(command)
        else:
            self._run.send(command)

    def _of_race(self, event: Event) -> bool:
        """Return whether an event belongs to a race's turn, which the session neither shows nor records."""
        if isinstance(event, Ready):
            self._ready = event
        if self._race is None or not self._race.take(event):
            return False
        if isinstance(event, TurnStarted):
            self._move(Trigger.TURN_STARTED)
        elif isinstance(event, TurnFinished):
            self._move(Trigger.TURN_FINISHED)
        return True

    def _end_race(self, why: Failed | None = None) -> None:
        """End a race because its engine ends, and drop the deferred commands."""
        self._after_race.clear()
        if self._race is not None:
            self._race.break_off(why)

    # --- another model ------------------------------------------------------------------------------------------------

    def use_model(self, model: str, new_engine: NewEngine) -> bool:
        """Switch to another model once its files are found; return False while an earlier engine is being ended.

        Until then, and if there is no such model, the present one continues. If the model is found but cannot be
        loaded, the session returns to the present one.
        """
        if self.state is State.RESTARTING:
            return False
        self._end_trial()
        self._trial = ModelTrial(model, new_engine, self._settings_for(model), self._take_model, self._refuse_model)
        self._trial.run.start()
        self.changed()
        return True

    @property
    def looking_for(self) -> str:
        """The model whose files are being looked for; "" if there is none."""
        return "" if self._trial is None else self._trial.model

    def _end_trial(self) -> None:
        """Cancel the search for another model."""
        if self._trial is not None:
            self._run.end_other(self._trial.run)
            self._trial = None
            self.changed()

    def _settings_for(self, model: str) -> Settings:
        """Return the settings for another model: with its own default decoder if the present decoder is the default of
        the present model, or does not fit every model, as one whose drafter was trained for it.
        """
        info = catalog.DECODERS.get(self.requested.decoder)
        if info is None or info.needs is not None or info.least_layers or info is catalog.first_decoder(self.model):
            return replace(self.requested, decoder=catalog.first_decoder(model).name)
        return self.requested

    def _take_model(self, trial: ModelTrial) -> None:
        """Replace this engine by that of another model, which is running already."""
        if trial is not self._trial:
            return
        self._trial = None
        if self.state in (State.READY, State.ANSWERING, State.STOPPING):
            self._way_back = WayBack(self.model, self._new_engine, self.requested.decoder)
        decoder, self.requested = self.requested.decoder, self._settings_for(trial.model)
        before = self._leave_engine()
        self._run, self._new_engine = trial.run, trial.new_engine
        self._run.came, self._run.ended = self._came, self._ended
        self._run.end_other(before)
        self._began()
        self._greet()
        if self.requested != trial.settings:  # they were changed during the search for its files
            self._run.send(Configure(**asdict(self.requested)))
        self._model_taken(trial.model, decoder if decoder != self.requested.decoder else "")
        for event in trial.events:
            self._came(event)

    def _refuse_model(self, trial: ModelTrial, why: Failed) -> None:
        if trial is self._trial:
            self._end_trial()
            self._add(replace(why, fatal=False))  # nothing else of this engine was shown
            self._model_refused(trial.model, why)

    def _go_back(self, why: Failed) -> None:
        """Return to the previous model if this one has failed to load."""
        way, self._way_back = self._way_back, None
        if way is None:
            return
        refused = self.model
        self._new_engine, self.requested = way.new_engine, replace(self.requested, decoder=way.decoder)
        self.restart()
        self._model_taken(way.model)
        self._model_refused(refused, why)

    # --- the user's requests ------------------------------------------------------------------------------------------

    def configure(self, change: Configure) -> None:
        """Request other settings. The engine reports which are active then."""
        given = {name: getattr(change, name) for name in change.__struct_fields__}
        given["parameters"] = {**self.requested.parameters, **(change.parameters or {})}
        self.requested = replace(self.requested, **{name: value for name, value in given.items() if value is not None})
        self._run.send(change)

    def set_pace(self, pace: ViewerPace) -> None:
        """Set the pace of the engine's steps, in this answer and later ones."""
        if pace != self.pace:
            self.pace = pace
            self._run.restart_silence()
            if not self.racing:
                self._run.send(pace.command())
            self.changed()

    def take_step(self) -> None:
        """Take one step of a paused answer."""
        self._step_due = True
        self._run.restart_silence()
        self._run.send(Pace(steps_per_second=0.0, step=True))

    def watch(self, lens: bool) -> None:
        """Set whether the readings of hidden states at each layer are shown; later engines receive the same."""
        if lens != self._lens:
            self._lens = lens
            if not self.racing:
                self._run.send(Watch(lens=lens))

    def _move(self, trigger: Trigger) -> None:
        self.state = following(self.state, trigger)
        self.changed()
