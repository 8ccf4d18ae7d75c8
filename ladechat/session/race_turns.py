"""The engine of a chat, lent to a race between two answers: events of the race's turns go to the race alone."""

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
    """The methods that a race calls on the session whose engine it borrows."""

    def lend(self, turns: "RaceTurns") -> Ready | None:
        """Pass events to `turns` from now on; return the engine's ready event, None while it loads."""
        ...

    def send_for_race(self, command: Command) -> None:
        """Send a command to the engine."""
        ...

    def race_over(self) -> None:
        """Take the engine back: the race has ended."""
        ...


class RaceTurns:
    """An `EngineSource` for the turns of a race, in an engine that continues after them. The turns have the number
    `TURN`, which no turn of a chat has.

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
    """Empty: the session reports the end of its engine."""

    # --- called by the race -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start listening. If the engine is still loading, its ready event follows later."""
        ready = self._lender.lend(self)
        if ready is not None:
            self._events.put_nowait(ready)

    async def send(self, command: Command) -> None:
        """Send a command to the engine, unless the race has ended."""
        if not self._closed:
            self._under_way = self._under_way or isinstance(command, Generate)
            self._lender.send_for_race(command)

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
                self._lender.send_for_race(Stop())
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
                self._lender.race_over()
        return True

    def break_off(self, why: Failed | None = None) -> None:
        """End the race because the engine has ended or is replaced."""
        self._under_way = False
        if why is not None:
            self._events.put_nowait(why)
        self._end()

    def _end(self) -> None:
        self._closed = True
        self._events.put_nowait(None)
        if not self._under_way:
            self._lender.race_over()
