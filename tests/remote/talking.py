"""Asking the engine of a server in this process: commands in, decoded events out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from ladechat.protocol import (
    Command,
    Event,
    Failed,
    Generate,
    Message,
    Ready,
    Settings,
    Step,
    TurnFinished,
    TurnStarted,
    decode_event,
    encode,
)
from ladechat.remote import server
from ladechat.remote.connection import Connection, Patience
from ladechat.remote.engine import Happening, RemoteEngine
from ladechat.remote.key import Key
from ladechat.server_address import ServerAddress
from tests.remote.scripted_server import ScriptedServer

E = TypeVar("E", bound=Event)
SECONDS = 300.0
IN_VAIN = Patience(connecting=SECONDS, asking=SECONDS, first=SECONDS, next=SECONDS)
GREEDY = Settings(decoder="server")


class Events:
    """What the engine has emitted, each event as a reader decodes it."""

    def __init__(self) -> None:
        self.all: list[Event] = []
        self._more = asyncio.Event()

    def emit(self, *events: Event) -> None:
        for event in events:
            decoded = decode_event(encode(event))
            assert decoded is not None
            self.all.append(decoded)
        self._more.set()

    async def until(self, kind: type[E], count: int = 1) -> E:
        """Wait for the `count`-th event of a kind, and return it."""
        async with asyncio.timeout(SECONDS):
            while len(found := self.of(kind)) < count:
                self._more.clear()
                await self._more.wait()
        return found[count - 1]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.all if isinstance(event, kind)]


class Talk:
    """A conversation with the engine.

    Attributes:
        events: all that it has said.
        ready: what it said of the server.
    """

    def __init__(self, events: Events, happenings: "asyncio.Queue[Happening]", ready: Ready) -> None:
        self.events = events
        self.ready = ready
        self._happenings = happenings
        self._turns = 0

    def send(self, command: Command) -> None:
        self._happenings.put_nowait(command)

    def ask(self, *said: str, most: int | None = 64, **more: object) -> int:
        """Ask, in a conversation of questions and answers by turns; an even number of them asks for more."""
        self._turns += 1
        roles = ("user", "assistant")
        messages = [Message(role=roles[place % 2], content=text) for place, text in enumerate(said)]  # type: ignore[arg-type]
        self.send(Generate(turn=self._turns, messages=messages, max_new_tokens=most, **more))  # type: ignore[arg-type]
        return self._turns

    async def answer(self, *said: str, most: int | None = 64, **more: object) -> TurnFinished:
        """Ask, and return the end of the answer."""
        self.ask(*said, most=most, **more)
        return await self.events.until(TurnFinished, len(self.events.of(TurnFinished)) + 1)

    async def failure(self, *said: str, most: int | None = 64) -> Failed:
        """Ask, and return why there is no answer, or not all of it."""
        self.ask(*said, most=most)
        return await self.events.until(Failed, len(self.events.of(Failed)) + 1)

    @property
    def steps(self) -> list[Step]:
        return self.events.of(Step)

    @property
    def started(self) -> TurnStarted:
        return self.events.of(TurnStarted)[-1]


@asynccontextmanager
async def talking(
    scripted: ScriptedServer,
    settings: Settings = GREEDY,
    *,
    patience: Patience = IN_VAIN,
    model: str = "",
    key: str = "",
) -> AsyncIterator[Talk]:
    """Find a server, and talk with it."""
    events = Events()
    connection = Connection(ServerAddress.of(scripted.url), Key(key or None), patience)
    served, found = await server._found(connection, model, events)  # type: ignore[arg-type]  # what it uses of a stream
    events.emit(server._ready(served, found, Key(key or None), settings, 0.5))
    happenings: asyncio.Queue[Happening] = asyncio.Queue()
    running = asyncio.create_task(RemoteEngine(served, settings, events, happenings).run())  # type: ignore[arg-type]
    try:
        yield Talk(events, happenings, events.of(Ready)[0])
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await connection.close()
