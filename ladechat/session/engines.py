"""The engine of a session: started, told what the user wants, and replaced by another."""

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
    """The model to go back to where the one that was chosen cannot be loaded, and the decoder that it had."""

    model: str
    new_engine: NewEngine
    decoder: str


class SessionEngines(ABC):
    """One engine after another. What their events mean is for the subclass.

    Args:
        new_engine: makes the first engine, and each one after it.
        settings: the first engine's.
        way_back: the model that answers where the first one cannot be loaded; None: no other.

    Attributes:
        state: see `State`.
        wished: the settings that the user wants; the next engine starts with them.
        pace: the pace that the user wants.
        changed: called when there are events to show, or something else of the session may be another than it was.
    """

    def __init__(self, new_engine: NewEngine, settings: Settings, way_back: WayBack | None = None) -> None:
        self.state = State.STARTING
        self.wished = settings
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
        self._step_due = False  # of a paused answer, which sends nothing else

    # --- what a subclass says -----------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def asking(self) -> bool:
        """Does a question wait for its answer, or for the rest of it?"""

    @property
    @abstractmethod
    def model(self) -> str:
        """The name of the model that answers."""

    @abstractmethod
    def _came(self, event: Event) -> None:
        """Take in an event of the engine."""

    @abstractmethod
    def _add(self, event: Event) -> None:
        """Put an event of our own into the stream, and show it at once."""

    @abstractmethod
    def _ended(self, why: str | None) -> None:
        """Take in the end of the engine; None if its last event has said why."""

    @abstractmethod
    def _leaving(self) -> None:
        """Take leave of the engine: nothing more comes of it."""

    @abstractmethod
    def _model_taken(self, model: str, replaced: str = "") -> None:
        """Another model answers from now on; and with another decoder, if it replaced one."""

    @abstractmethod
    def _model_refused(self, model: str, why: Failed) -> None:
        """A model cannot be had; the one before goes on."""

    # --- from the start to the end ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the first engine. Commands that were sent before reach it."""
        self._run.start(began=self._began)

    def restart(self) -> bool:
        """Put a new engine in the place of this one; False while an earlier one is still being ended."""
        if self.state is State.RESTARTING:
            return False
        before = self._leave_engine()
        self._run = EngineRun(self._new_engine(self.wished), self._came, self._ended)
        self._greet()
        self._run.start(after=before, began=self._began)
        return True

    def _leave_engine(self) -> EngineRun:
        """Take no more from the engine that is there, which is still to be closed."""
        self._end_race(REPLACED)
        self._leaving()
        self._ready, self._step_due = None, False
        self._run.let_go()
        self._move(Trigger.RESTART)
        return self._run

    def _greet(self) -> None:
        """Tell a new engine what the one before it was told."""
        if self._lens:
            self._run.send(Watch(lens=True))
        self.pace = self.pace.pause(False)  # it was for the answer that is broken off
        if self.pace.rate is not None:
            self._run.send(self.pace.command())

    async def close(self) -> None:
        """End the engine, and what else is running."""
        if self._trial is not None:
            await self._trial.run.close()
        await self._run.close()

    def _began(self) -> None:
        self._move(Trigger.RESTARTED)

    def stuck_for(self) -> float | None:
        """Seconds of silence of an engine that should have sent something; None while all is well, as in a pause."""
        return self._run.silent_for(self.most_silence)

    @property
    def most_silence(self) -> float | None:
        """How many seconds the engine may be silent; None where nothing is expected of it."""
        waits = self.pace.paused and self.asking and not self._step_due
        if waits and not self.racing and self.state in (State.READY, State.ANSWERING):
            return None
        if self.state is State.READY and (self.asking or self.racing):
            return SILENCE_SECONDS[State.ANSWERING]
        return SILENCE_SECONDS.get(self.state)

    # --- a race in this engine ----------------------------------------------------------------------------------------

    @property
    def racing(self) -> bool:
        """Does a race have the engine? It may have been left, while its last pass is still under way."""
        return self._race is not None

    def lend(self, turns: RaceTurns) -> Ready | None:
        """See `ladechat.session.race_turns.Lender`. A race goes as fast as it can, and nobody looks at panels."""
        self._race = turns
        self._run.restart_silence()
        if self.state is State.ENDED:
            turns.break_off()
            return None
        if self.pace != ViewerPace():
            self._run.send(Pace())
        if self._lens:
            self._run.send(Watch(lens=False))
        return None if self._ready is None else replace(self._ready, settings=self.wished)

    def send_for_race(self, command: Command) -> None:
        """See `ladechat.session.race_turns.Lender`."""
        self._run.restart_silence()
        self._run.send(command)

    def race_over(self) -> None:
        """See `ladechat.session.race_turns.Lender`. What the user has wanted meanwhile is done now."""
        self._race = None
        if self.pace != ViewerPace():
            self._run.send(self.pace.command())
        if self._lens:
            self._run.send(Watch(lens=True))
        commands, self._after_race = self._after_race, []
        for command in commands:
            self._run.send(command)

    def _send(self, command: Command) -> None:
        """Send what begins or ends an answer; after a race."""
        self._run.restart_silence()
        if self.racing:
            self._after_race.append(command)
        else:
            self._run.send(command)

    def _of_race(self, event: Event) -> bool:
        """Whether an event is of a race's turn, and no part of what the session shows and records."""
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
        """The engine ends, and with it the race and what was to come after it."""
        self._after_race.clear()
        if self._race is not None:
            self._race.break_off(why)

    # --- another model ------------------------------------------------------------------------------------------------

    def use_model(self, model: str, new_engine: NewEngine) -> bool:
        """Have another model answer as soon as its files are found; False while an earlier engine is being ended.

        Until then, and where there is no such model, the one that answers goes on. One that is found and then cannot be
        loaded gives way to it again.
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
        """The model whose files are being looked for; "" where none are."""
        return "" if self._trial is None else self._trial.model

    def _end_trial(self) -> None:
        """Look for another model no more."""
        if self._trial is not None:
            self._run.end_other(self._trial.run)
            self._trial = None
            self.changed()

    def _settings_for(self, model: str) -> Settings:
        """The settings for another model. It begins with its own first decoder where the one that decodes now was the
        first of the present model, or is not for every model, as one that drafts with what was trained.
        """
        info = catalog.DECODERS.get(self.wished.decoder)
        if info is None or info.needs is not None or info.least_layers or info is catalog.first_decoder(self.model):
            return replace(self.wished, decoder=catalog.first_decoder(model).name)
        return self.wished

    def _take_model(self, trial: ModelTrial) -> None:
        """Put the engine of another model, which runs already, in the place of this one."""
        if trial is not self._trial:
            return
        self._trial = None
        if self.state in (State.READY, State.ANSWERING, State.STOPPING):
            self._way_back = WayBack(self.model, self._new_engine, self.wished.decoder)
        decoder, self.wished = self.wished.decoder, self._settings_for(trial.model)
        before = self._leave_engine()
        self._run, self._new_engine = trial.run, trial.new_engine
        self._run.came, self._run.ended = self._came, self._ended
        self._run.end_other(before)
        self._began()
        self._greet()
        if self.wished != trial.settings:  # they were changed while its files were looked for
            self._run.send(Configure(**asdict(self.wished)))
        self._model_taken(trial.model, decoder if decoder != self.wished.decoder else "")
        for event in trial.events:
            self._came(event)

    def _refuse_model(self, trial: ModelTrial, why: Failed) -> None:
        if trial is self._trial:
            self._end_trial()
            self._add(replace(why, fatal=False))  # of this engine nothing else was shown
            self._model_refused(trial.model, why)

    def _go_back(self, why: Failed) -> None:
        """Have the model answer again that did before this one, if this one has failed to load."""
        way, self._way_back = self._way_back, None
        if way is None:
            return
        refused = self.model
        self._new_engine, self.wished = way.new_engine, replace(self.wished, decoder=way.decoder)
        self.restart()
        self._model_taken(way.model)
        self._model_refused(refused, why)

    # --- what the user wants ------------------------------------------------------------------------------------------

    def configure(self, change: Configure) -> None:
        """Ask for other settings. What then holds, the engine says."""
        given = {name: getattr(change, name) for name in change.__struct_fields__}
        given["parameters"] = {**self.wished.parameters, **(change.parameters or {})}
        self.wished = replace(self.wished, **{name: value for name, value in given.items() if value is not None})
        self._run.send(change)

    def set_pace(self, pace: ViewerPace) -> None:
        """Have the engine take its steps at another pace, in this answer and those after it."""
        if pace != self.pace:
            self.pace = pace
            self._run.restart_silence()
            if not self.racing:
                self._run.send(pace.command())
            self.changed()

    def take_step(self) -> None:
        """One step of a paused answer."""
        self._step_due = True
        self._run.restart_silence()
        self._run.send(Pace(steps_per_second=0.0, step=True))

    def watch(self, lens: bool) -> None:
        """Say whether somebody looks at what hidden states read at each layer; a new engine is told it too."""
        if lens != self._lens:
            self._lens = lens
            if not self.racing:
                self._run.send(Watch(lens=lens))

    def _move(self, trigger: Trigger) -> None:
        self.state = following(self.state, trigger)
        self.changed()
