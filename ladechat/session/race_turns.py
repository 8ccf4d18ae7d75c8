"""The engine of a chat, lent to a race between two answers: what it says of the race's turns goes to the race alone."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

from ladechat.protocol import Command, Event, Failed, Generate, Loading, Ready, Stop, TurnFinished, TurnStarted
from ladechat.session.measuring import TURN

REPLACED = Failed(
    code="internal",
    message="The engine of this race was replaced by another.",
    hint="Leave, and race again.",
    turn=TURN,
)


class Lender(Protocol):
    """What a race needs of the session whose engine it borrows."""

    def lend(self, turns: "RaceTurns") -> Ready | None:
        """From now on, pass events to `turns`; what the engine has said when it was ready, None while it loads."""
        ...

    def send_for_race(self, command: Command) -> None:
        """Pass on a command."""
        ...

    def race_over(self) -> None:
        """The race has ended: nothing more of it comes from the engine."""
        ...


class RaceTurns:
    """An `EngineSource` of the turns of a race, in an engine that goes on after them. Its turns are numbered `TURN`,
    which no turn of a chat is.

    Args:
        lender: the session.
    """

    def __init__(self, lender: Lender) -> None:
        self._lender = lender
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._under_way = False
        self._began = False
        self._closed = False

    last_line = ""
    """The session says how its engine has ended."""

    # --- what the race calls ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to listen. An engine that still loads says later that it is ready."""
        ready = self._lender.lend(self)
        if ready is not None:
            self._events.put_nowait(ready)

    async def send(self, command: Command) -> None:
        """Pass a command on, unless the race has ended."""
        if not self._closed:
            self._under_way = self._under_way or isinstance(command, Generate)
            self._lender.send_for_race(command)

    def dump_stacks(self) -> None:
        """The session asks its engine for them."""

    async def events(self) -> AsyncIterator[Event]:
        """What the engine says that a race has to know, until one of them ends."""
        while (event := await self._events.get()) is not None:
            yield event

    async def close(self) -> None:
        """End the race, not the engine. A turn that is under way is stopped, and ends a little later."""
        if not self._closed:
            if self._under_way:
                self._lender.send_for_race(Stop())
            self._end()

    # --- what the session calls ---------------------------------------------------------------------------------------

    def take(self, event: Event) -> bool:
        """Take in an event of the engine; whether it is of the race's own turn, and nobody else's business."""
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
                self._lender.race_over()
        return True

    def break_off(self, why: Failed | None = None) -> None:
        """The engine has ended, or is replaced: nothing more comes of it."""
        self._under_way = False
        if why is not None:
            self._events.put_nowait(why)
        self._end()

    def _end(self) -> None:
        self._closed = True
        self._events.put_nowait(None)
        if not self._under_way:
            self._lender.race_over()
