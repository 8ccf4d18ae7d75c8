"""Measures decoders on one question, one after another, in one engine: its own, or that of a chat."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence

from ladechat import catalog
from ladechat.protocol import (
    Command,
    Event,
    Failed,
    Generate,
    Header,
    Loading,
    Message,
    Pong,
    Ready,
    Step,
    Stop,
    TurnFinished,
    TurnStarted,
)
from ladechat.session.engine import SILENCE_SECONDS, EngineSource, State, and_last_line
from ladechat.session.race import PLAIN, Lane, conclusions

DEFAULT_DECODERS = (PLAIN, "lookahead", "hidden_transfer", "auto")
FEWEST, MOST = 2, 4
SEED = 0
"""The seed of each lane, unless the settings give one."""
TURN = 0
"""The turn of every lane, also in the engine of a chat, whose own turns count from 1."""
ONE_WAY = (
    "A server decodes in one way only, so nothing can race in it; ladechat race --server URL --server URL compares two "
    "servers."
)
REPLACED = Failed(
    code="internal",
    message="The engine of this race was replaced by another.",
    hint="Leave, and race again.",
    turn=TURN,
)


def problem(names: Sequence[str]) -> str | None:
    """Return what is wrong with the requested decoders, in a sentence; None if nothing is."""
    for name in names:
        if name not in catalog.DECODERS:
            return f"There is no decoder {name!r}; give --decoders {FEWEST} to {MOST} of {', '.join(catalog.DECODERS)}."
    if not FEWEST <= len(names) <= MOST:
        return f"A race has {FEWEST} to {MOST} decoders, not {len(names)}; name them with --decoders, commas between."
    return None


class Measuring:
    """Asks an engine the same question with one decoder after another, and collects its events.

    Each answer is decoded without what was learnt from the answers before: see `Generate.fresh`. The engine's
    settings stay as they are.

    Args:
        engine: an engine that was not started yet. It is closed when all is measured, or nothing more can be; one that
            is lent by a chat continues after that.
        messages: the conversation, the question last.
        names: the requested decoders; None: the default ones, as far as the engine offers them.
        max_new_tokens: the longest answer, in tokens; None: the engine's default.

    Attributes:
        lanes: the lanes of the race, once the engine has sent which decoders it offers.
        header: what the engine has said of itself; None in an engine that is lent by a chat.
        loading: the engine's last loading event.
        round_trip_ms: the latency of the link to an engine that a command of the user's has started, else None.
        running: whether something is being measured, or about to be.
        failure: why nothing more is measured, in a sentence; None if all went well.
        refused: whether the reason is the request itself.
        ended: whether the reason is that the engine has ended.
    """

    def __init__(
        self,
        engine: EngineSource,
        messages: Sequence[Message],
        names: Sequence[str] | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        self.lanes: list[Lane] = []
        self.header: Header | None = None
        self.loading: Loading | None = None
        self.round_trip_ms: float | None = None
        self.running = True
        self.failure: str | None = None
        self.refused = False
        self.ended = False
        self._engine = engine
        self._messages = list(messages)
        self._names = names
        self._max_new_tokens = max_new_tokens
        self._seed = SEED
        self._current = -1
        self._stopped = False
        self._silent_since = time.monotonic()

    @property
    def question(self) -> str:
        """The question that all decoders answer."""
        return self._messages[-1].content

    @property
    def current(self) -> Lane | None:
        """The lane that is being measured."""
        return self.lanes[self._current] if self.running and 0 <= self._current < len(self.lanes) else None

    @property
    def silent_for(self) -> float | None:
        """The seconds of silence of an engine that should have sent something; None if all is well."""
        seconds = time.monotonic() - self._silent_since
        return seconds if seconds > SILENCE_SECONDS[State.ANSWERING if self.lanes else State.LOADING] else None

    def conclusions(self) -> list[str]:
        """Return the closing lines: exactness check, passes saved, measured times; without those that are not known."""
        return conclusions(self.lanes)

    async def run(self) -> None:
        """Measure all decoders, until it is done, stopped or has failed; the engine has ended then."""
        try:
            await self._measure()
        finally:
            self.running = False

    async def _measure(self) -> None:
        """Measure all that this engine has to answer; it has ended then."""
        try:
            await self._engine.start()
            async for event in self._engine.events():
                if not isinstance(event, Pong):
                    self._silent_since = time.monotonic()
                if not await self._take(event):
                    break
            else:
                if not self._stopped:
                    await self._engine.close()
                    self._end_with(and_last_line("The engine ended before the race did.", self._engine))
        except OSError as error:
            self._end_with(f"The engine could not be run: {error}.")
        finally:
            await self._engine.close()

    async def stop(self) -> None:
        """Stop measuring after the current step; an engine that is still loading is ended."""
        self._stopped = True
        if self.current is None:
            await self._engine.close()
        else:
            await self._engine.send(Stop())

    async def _take(self, event: Event) -> bool:
        """Collect an event, and continue after it; return False if nothing more is to come."""
        match event:
            case Header():
                self.header = event
            case Loading():
                self.loading = event
            case Ready():
                return self._choose(event) and await self._next()
            case Pong():
                self.round_trip_ms = event.round_trip_ms or self.round_trip_ms
            case TurnStarted():
                self.lanes[self._current].settings = event.settings
            case Step():
                self.lanes[self._current].steps.append(event)
            case TurnFinished():
                self.lanes[self._current].finish(event)
                return not self._stopped and await self._next()
            case Failed() if event.fails(TURN):
                self.failure = f"{event.message} {event.hint}"
                self.ended = event.fatal
                return False
        return True

    def _end_with(self, sentence: str) -> None:
        self.failure, self.ended = sentence, True

    def _choose(self, ready: Ready) -> bool:
        """Set up the lanes with the decoders that this engine offers; return False if no race is possible."""
        if ready.server is not None:
            return self._refuse(ONE_WAY)
        offered = {info.name: info for info in ready.decoders if ready.single_token is None or not info.tree_attention}
        missing = next((name for name in self._names or () if name not in offered), None)
        if missing is not None:
            label, single_token = catalog.DECODERS[missing].label, ready.single_token
            if single_token is not None:
                return self._refuse(f"{label} cannot be used with this model: {single_token}")
            return self._refuse(f"{label} is not offered for this model; choose among {', '.join(offered)}.")
        names = self._names or [name for name in DEFAULT_DECODERS if name in offered]
        if len(names) < FEWEST:
            return self._refuse(f"A race needs two decoders. Plain decoding only: {ready.single_token}")
        self.lanes = [Lane(name, offered[name].label) for name in names]
        self._seed = SEED if ready.settings.seed is None else ready.settings.seed
        return True

    def _refuse(self, sentence: str) -> bool:
        self.failure, self.refused = sentence, True
        return False

    async def _next(self) -> bool:
        """Start the next lane; return False if there is none."""
        self._current += 1
        if self._current == len(self.lanes):
            return False
        await self._engine.send(
            Generate(
                turn=TURN,
                messages=self._messages,
                max_new_tokens=self._max_new_tokens,
                fresh=True,
                seed=self._seed,
                decoder=self.lanes[self._current].name,
            )
        )
        return True


class RaceTurns:
    """An `EngineSource` for the turns of a race, in the engine of a chat, which continues after them. The turns have
    the number `TURN`, which no turn of a chat has.

    Args:
        lend: called when the race begins; returns the engine's ready event, None while it loads. From then on `take`
            gets the engine's events.
        send: sends a command to the engine.
        over: called when the engine is free again.

    Attributes:
        deferred: the chat's own commands, to be sent after the race.
    """

    def __init__(
        self,
        lend: "Callable[[RaceTurns], Ready | None]",
        send: Callable[[Command], None],
        over: Callable[[], None],
    ) -> None:
        self.deferred: list[Command] = []
        self._lend = lend
        self._send = send
        self._over = over
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._under_way = False
        self._began = False
        self._closed = False

    last_line = first_words = ""
    """Empty: the session reports what its engine says, and its end."""

    # --- called by the race -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start listening. If the engine is still loading, its ready event follows later."""
        ready = self._lend(self)
        if ready is not None:
            self._events.put_nowait(ready)

    async def send(self, command: Command) -> None:
        """Send a command to the engine, unless the race has ended."""
        if not self._closed:
            self._under_way = self._under_way or isinstance(command, Generate)
            self._send(command)

    def dump_stacks(self) -> None:
        """Do nothing: the engine belongs to the chat's session, which has it log the stacks of its threads."""

    async def events(self) -> AsyncIterator[Event]:
        """Yield the events that concern a race, until the race or the engine ends."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """End the race, not the engine. The current turn is stopped, and ends a little later."""
        if not self._closed:
            if self._under_way:
                self._send(Stop())
            self._end()

    # --- called by the session ----------------------------------------------------------------------------------------

    def take(self, event: Event) -> bool:
        """Process an event of the engine; return whether it belongs to the race's own turn, and to nobody else."""
        own = getattr(event, "turn", None) == TURN
        fatal = isinstance(event, Failed) and event.fatal
        if own or fatal or isinstance(event, Loading | Ready):
            self._events.put_nowait(event)
        if not own:
            return False
        if isinstance(event, TurnStarted):
            self._began = True
        elif isinstance(event, TurnFinished) or (isinstance(event, Failed) and not self._began):
            self._under_way = self._began = False
            if self._closed:
                self._over()
        return True

    def break_off(self, why: Failed | None = None) -> None:
        """End the race because the engine has ended or is replaced, and drop what was deferred."""
        self.deferred.clear()
        self._under_way = False
        if why is not None:
            self._events.put_nowait(why)
        self._end()

    def _end(self) -> None:
        self._closed = True
        self._events.put_nowait(None)
        if not self._under_way:
            self._over()
