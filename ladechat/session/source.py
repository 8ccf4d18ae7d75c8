"""The UI's interface to an engine: what it takes and sends, its states, and the order of its events.

Local, remote and scripted engines look the same to it.
"""

from collections.abc import AsyncIterator, Callable, Mapping
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
    PolicyChoice,
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
        ...

    async def start(self) -> None:
        """Start the engine. From now on it sends events and accepts commands, also while the model loads."""
        ...

    async def send(self, command: Command) -> None:
        """Send a command. Commands after the engine's end are dropped."""
        ...

    def dump_stacks(self) -> None:
        """Ask a stuck engine to write its thread stacks into its log."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Yield the engine's events, until it ends."""
        ...

    async def close(self) -> None:
        """End the engine, and wait until it has ended."""
        ...


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


class Order:
    """Reads the lines of a stream, live or from a recording, and checks their order, which no single event can show.

    A stream begins with its header. Steps, and the end of a turn, belong to a turn that was asked or has started, and
    has neither ended nor been cleared with its conversation.

    Args:
        restarts: whether more headers may follow, as in a recording: each engine that was restarted sends its own.
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
            case Step() | Prefilling() | PolicyChoice() | TurnFinished():
                if event.turn != self._turn:
                    raise ProtocolError(f"question {event.turn} is not being answered")
                if isinstance(event, TurnFinished):
                    self._turn = None
            case ConversationCleared() | ConversationOpened() | ExchangeRemoved() | ExchangeRestored():
                self._turn = None
            case Failed(fatal=True):
                self._turn = None
        return event
