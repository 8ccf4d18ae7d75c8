"""An engine as the UI sees it: what it takes and sends, its states, the order of its events, and one run of it.

Local, remote and scripted engines look the same to it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from enum import Enum, auto
from typing import Protocol

from ladechat.protocol import (
    Asked,
    Command,
    ConversationCleared,
    ConversationOpened,
    Event,
    ExchangeRemoved,
    ExchangeRestored,
    Failed,
    Header,
    PassCosts,
    PolicyChoice,
    Pong,
    Prefilling,
    ProtocolError,
    Settings,
    Step,
    TurnFinished,
    TurnStarted,
    decode_event,
)


class EngineSource(Protocol):
    """A source of events that takes commands."""

    @property
    def last_line(self) -> str:
        """The last line of its log, which is complete after `close`; "" if there is none."""

    @property
    def first_words(self) -> str:
        """What a command has written so far that is not an engine's header, its last line; "" once the header came."""

    async def start(self) -> None:
        """Start the engine. From now on it sends events and accepts commands, also while the model loads."""

    async def send(self, command: Command) -> None:
        """Send a command. Commands after the engine's end are dropped."""

    def dump_stacks(self) -> None:
        """Ask a stuck engine to write its thread stacks into its log."""

    def events(self) -> AsyncIterator[Event]:
        """Yield the engine's events, until it ends."""

    async def close(self) -> None:
        """End the engine, and wait until it has ended."""


NewEngine = Callable[[Settings], EngineSource]
"""Creates an engine that will start with these settings."""


def and_last_line(sentence: str, engine: EngineSource) -> str:
    """Return a sentence for the end of an engine that gave no reason, with the last line of its log."""
    return f"{sentence} Its log ends: {engine.last_line}" if engine.last_line else sentence


class State(Enum):
    """The state of an engine, as far as its events have been shown."""

    STARTING = auto()
    """The process was started and has not sent a header yet."""

    LOADING = auto()
    DOWNLOADING = auto()
    """Loading, and downloading files, which can be stopped."""

    READY = auto()
    ANSWERING = auto()
    STOPPING = auto()
    """Answering; a stop was sent."""

    RESTARTING = auto()
    """The previous engine is being ended; a new one follows."""

    ENDED = auto()


LOADING = (State.LOADING, State.DOWNLOADING)
LOADED = (State.READY, State.ANSWERING, State.STOPPING)
"""The states of an engine that accepts questions."""

SILENCE_SECONDS: Mapping[State, float] = {
    **dict.fromkeys((State.STARTING, *LOADING), 60.0),
    **dict.fromkeys((State.ANSWERING, State.STOPPING), 30.0),
}
"""The seconds without an event after which an engine counts as stuck. In other states no event is expected."""


class EngineRun:
    """Runs an engine in a task of its own, and passes on its events as they arrive.

    Args:
        came: called with each event.
        ended: called once, when the engine has ended by itself, with the reason; None if its last event gave it.
    """

    def __init__(
        self, engine: EngineSource, came: Callable[[Event], None], ended: Callable[[str | None], None]
    ) -> None:
        self.came = came
        self.ended = ended
        self._engine = engine
        self._running: asyncio.Task[None] | None = None
        self._others: list[EngineRun] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent_since = time.monotonic()
        self._dumped_stacks = False

    def start(self, after: "EngineRun | None" = None, began: Callable[[], None] = lambda: None) -> None:
        """Start the engine, unless it was started, once the engine `after` has ended, and call `began`. Commands that
        were sent before reach it.
        """
        if self._running is None:
            self.reset_silence()
            self._running = asyncio.create_task(self.run(after, began))
            if after is not None:
                self._others.append(after)

    def end_other(self, other: "EngineRun") -> None:
        """End another engine in the background; it has ended at the latest when this one is closed."""
        self._others.append(other)
        self._spawn(other.close())

    def let_go(self) -> None:
        """Pass on no more events. The engine still has to be closed."""
        if self._running is not None:
            self._running.cancel()

    async def close(self) -> None:
        """End the engine and those passed to `end_other`, and wait until they have ended."""
        self.let_go()
        if self._running is not None:
            await asyncio.wait([self._running])  # awaiting it would raise its cancellation in this task
        for other in self._others:
            await other.close()
        await self._engine.close()

    def end(self) -> None:
        """End the engine; its end is reported like any other."""
        self._spawn(self._engine.close())

    def send(self, command: Command) -> None:
        """Send a command without waiting until it is written."""
        self._spawn(self._engine.send(command))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def first_words(self) -> str:
        """See `EngineSource.first_words`."""
        return self._engine.first_words

    def reset_silence(self) -> None:
        """Count the silence from now."""
        self._silent_since = time.monotonic()

    def silent_for(self, limit: float | None) -> float | None:
        """Return the seconds of a silence longer than `limit`, else None; once per silence, ask for the stacks."""
        seconds = time.monotonic() - self._silent_since
        silent = limit is not None and seconds > limit
        if silent and not self._dumped_stacks:
            self._engine.dump_stacks()
        self._dumped_stacks = silent
        return seconds if silent else None

    async def run(self, after: "EngineRun | None", began: Callable[[], None]) -> None:
        """Run the engine to its end; `start` runs this in a task of its own."""
        if after is not None:
            await after.close()
        self.reset_silence()
        began()
        last: Event | None = None
        try:
            await self._engine.start()
            async for last in self._engine.events():
                if not isinstance(last, Pong):  # which an engine that is stuck sends too
                    self.reset_silence()
                self.came(last)
            await self._engine.close()  # only now all of its log is there, of which the reason is a line
            why = and_last_line("The engine has ended.", self._engine)
        except OSError as error:
            why = f"The engine could not be run: {error}."
        has_said_why = isinstance(last, Failed) and last.fatal
        self.ended(None if has_said_why else why)


class Order:
    """Reads the lines of a stream, live or from a recording, and checks their order, which no single event can show.

    A stream begins with its header. Steps, and the end of a turn, belong to a turn that was asked or has started, and
    has neither ended nor been cleared with its conversation. If it `restarts`, as in a recording, more headers may
    follow: each engine that was restarted sends its own.
    """

    def __init__(self, *, restarts: bool) -> None:
        self._restarts = restarts
        self._begun = False
        self._turn: int | None = None

    def event(self, line: bytes) -> Event | None:
        """Return the event in the next line; None for a kind that this version does not know.

        Raises:
            ProtocolError: the line is no event, or one that may not come at this place. Reading can continue after it.
        """
        event = decode_event(line)
        match event:
            case None:
                pass
            case Header():
                if self._begun and not self._restarts:
                    raise ProtocolError("it is a second header")
                self._begun, self._turn = True, None
            case _ if not self._begun:
                raise ProtocolError("it comes before the header")
            case Asked() | TurnStarted():
                self._turn = event.turn
            case Step() | Prefilling() | PassCosts() | PolicyChoice() | TurnFinished():
                if event.turn != self._turn:
                    raise ProtocolError(f"question {event.turn} is not being answered")
                if isinstance(event, TurnFinished):
                    self._turn = None
            case ConversationCleared() | ConversationOpened() | ExchangeRemoved() | ExchangeRestored():
                self._turn = None
            case Failed(fatal=True):
                self._turn = None
        return event
