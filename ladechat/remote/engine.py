"""Carries out the protocol's commands by asking a server."""

import asyncio
import secrets
import time
import traceback
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from ladechat import catalog, protocol
from ladechat.engine_process.pace import StepPace
from ladechat.engine_process.refusals import bad_command, busy
from ladechat.engine_process.stream import EventStream
from ladechat.protocol import Command, Configure, Generate, ProtocolError, Settings, Stop
from ladechat.remote.answer import reports
from ladechat.remote.connection import Connection
from ladechat.remote.faults import ServerFault
from ladechat.remote.finding import Program
from ladechat.remote.reports import Asked, Tokens
from ladechat.remote.turn import Happened, Turn

MOST_TOKENS = 2048
"""The longest answer where the user sets no limit, in tokens."""
SEED_BITS, SEEDS = 31, 2**53
COMPLETE = "This answer is complete: the model itself ended it."


class Arrived(NamedTuple):
    """What a server has reported of an answer, or why it tells no more, with its time."""

    turn: Turn
    reported: Happened
    at: float


Happening = Command | ProtocolError | Arrived


@dataclass(frozen=True)
class Served:
    """A model on a server."""

    connection: Connection
    program: Program
    model: str
    context_length: int


class RemoteEngine:
    """Carries out commands, one after another. While an answer comes it is held back as the viewer's pace wants.
    `happenings` gives commands, and what the server tells.
    """

    def __init__(
        self, served: Served, settings: Settings, stream: EventStream, happenings: "asyncio.Queue[Happening]"
    ) -> None:
        self._served = served
        self._settings = settings
        self._stream = stream
        self._happenings = happenings
        self._rivals = False
        self._pace = StepPace()
        self._stop = False
        self._waiting: deque[Arrived] = deque()
        self._complete = ""
        """The text of the last answer, if the model itself ended it."""

    async def run(self) -> None:
        """Serve as long as the process lives: the end of its input ends it."""
        while True:
            happening = await self._happenings.get()
            if isinstance(happening, Generate):
                await self._answer(happening)
            elif not isinstance(happening, Arrived):  # else it is the rest of an answer that was stopped
                self._take(happening)

    def _take(self, command: Command | ProtocolError) -> None:
        match command:
            case Stop():
                self._stop = True
            case Configure():
                self._configure(command)
            case protocol.Watch():
                self._rivals = command.rivals
            case protocol.Pace():
                self._pace.change(command)
            case Generate():
                self._stream.emit(busy(command.turn))
            case ProtocolError():
                self._stream.emit(bad_command(command))

    def _configure(self, change: Configure) -> None:
        """Change settings, from the next answer on: a server takes them with the question."""
        if change.decoder not in (None, catalog.SERVER.name):
            self._stream.emit(bad_command(f"a server decodes as it was started, not by {change.decoder!r}"))
            return
        names = [name for name in protocol.SamplingSettings.__struct_fields__ if getattr(change, name) is not None]
        self._settings = msgspec.structs.replace(self._settings, **{name: getattr(change, name) for name in names})
        self._stream.emit(protocol.SettingsApplied(settings=self._settings))

    # --- an answer ----------------------------------------------------------------------------------------------------

    async def _answer(self, command: Generate) -> None:
        if (why_not := self._refusal(command)) is not None:
            self._stream.emit(why_not)
            return
        asked = self._asked(command)
        turn = Turn(command, asked, self._served.context_length, time.monotonic())
        self._stop = False
        self._pace.begin_answer()
        reading = asyncio.create_task(self._read(turn, asked))
        try:
            await self._show(turn)
        finally:
            reading.cancel()  # closes the connection, by which the server notices
            await asyncio.wait([reading])
            self._waiting.clear()
        self._complete = turn.text if turn.reason == "eos" else ""

    def _refusal(self, command: Generate) -> protocol.Failed | None:
        """Return why a question cannot be asked; None if it can."""
        last = command.messages[-1] if command.messages else None
        if last is None or not any(one.role == "user" for one in command.messages) or last.role == "system":
            return bad_command("there is no question in it", command.turn)
        if command.decoder not in (None, catalog.SERVER.name):
            return bad_command(f"a server decodes as it was started, not by {command.decoder!r}", command.turn)
        if last.role == "assistant" and not self._served.program.dialect.continues:
            message = f"{self._served.program.name} cannot continue an answer."
            return protocol.Failed(code="bad_command", message=message, hint="Ask it to go on.", turn=command.turn)
        if last.role == "assistant" and last.content.endswith(self._complete or "\0"):
            return protocol.Failed(code="bad_command", message=COMPLETE, hint="Ask for more.", turn=command.turn)
        return None

    def _asked(self, command: Generate) -> Asked:
        usual = min(MOST_TOKENS, max(1, self._served.context_length // 2))
        thinking = command.thinking or self._settings.thinking
        settings = msgspec.structs.replace(self._settings, thinking=thinking)
        return Asked(
            model=self._served.model,
            messages=command.messages,
            settings=settings,
            seed=self._seed(command),
            most_tokens=command.max_new_tokens or usual,
            rivals=self._rivals and not command.fresh,
        )

    def _seed(self, command: Generate) -> int:
        """Return the seed of an answer: its own, a random one, or one that follows from the settings' and the turn."""
        if command.seed is not None:
            return command.seed
        first = self._settings.seed
        return secrets.randbits(SEED_BITS) if first is None else (first + command.turn - 1) % SEEDS

    async def _read(self, turn: Turn, asked: Asked) -> None:
        """Ask the server, and put all that it tells among the happenings, or why it tells no more."""

        def put(one: Happened) -> None:
            self._happenings.put_nowait(Arrived(turn, one, time.monotonic()))

        try:
            async for one in reports(self._served.connection, self._served.program.dialect, asked):
                put(one)
        except ServerFault as fault:
            put(fault)
        except Exception as error:  # whatever a server provokes: the conversation goes on
            traceback.print_exc()
            put(ServerFault(f"Something went wrong that should not have: {type(error).__name__}.", "The log has it."))

    async def _show(self, turn: Turn) -> None:
        """Emit an answer as it comes, at the viewer's pace, until its end, a fault or a stop."""
        while turn.reason is None:
            self._emit_what_is_due(turn)
            if turn.reason is None:
                await self._gather(turn)
            if self._stop and turn.reason is None:
                self._stream.emit(*turn.stopped())

    async def _gather(self, turn: Turn) -> None:
        """Wait for what happens next, at most until the next step is due, and take all that has happened."""
        try:
            async with asyncio.timeout(self._pace.seconds_left() if self._waiting else None):
                self._sort(await self._happenings.get(), turn)
        except TimeoutError:
            return
        while not self._happenings.empty():
            self._sort(self._happenings.get_nowait(), turn)

    def _sort(self, happening: Happening, turn: Turn) -> None:
        """Take a command; put what the server tells of this answer behind what waits to be shown."""
        if not isinstance(happening, Arrived):
            self._take(happening)
        elif happening.turn is turn:
            self._waiting.append(happening)

    def _emit_what_is_due(self, turn: Turn) -> None:
        """Emit all that the pace allows now, in one write. Only steps wait for it."""
        events: list[protocol.Event] = []
        while self._waiting:
            if isinstance(self._waiting[0].reported, Tokens):
                if self._pace.seconds_left() != 0:
                    break
                self._pace.begin_step()
            arrived = self._waiting.popleft()
            events += turn.events(arrived.reported, arrived.at)
        if events:
            self._stream.emit(*events)
