"""An engine that a command of the user's starts, mostly on another machine, over a link that may be slow or break.

Nothing is sent before its header has come: what reads at the other end may be a shell, which would take a question for
a command.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

from msgspec.structs import replace

from ladechat.engine_command import UNCHANGED, EngineCommand
from ladechat.engine_options import EngineOptions
from ladechat.protocol import (
    VERSION,
    Command,
    Configure,
    Event,
    Failed,
    Head,
    Header,
    Ping,
    Pong,
    ProtocolError,
    Ready,
    Settings,
    Step,
    TurnFinished,
    TurnStarted,
    decode_event,
    encode,
    read_head,
)
from ladechat.session.change import configured
from ladechat.session.live import MOST_OF_A_LINE, SECONDS_TO_LEAVE, LiveEngine

PING_SECONDS = 5.0
"""The time between two measurements of the link in an answer. While nothing happens it is not measured."""
PINGS = 5
"""The pings of a measurement, one after another. The shortest round trip is that of the link: others include a wait for
the engine's interpreter lock, or for a screen that is being drawn."""
MOST_LINES_BEFORE = 100
"""The lines that may come before the header, such as a greeting of the other machine."""
TRY_IT = 'Run it in a shell: an engine\'s first line begins with {"event":"header".'
ECHO = b'{"command":'


class NotAnEngine(Exception):
    """Raised for a command that does not speak the protocol, or another version of it; `hint` says what to do."""

    def __init__(self, message: str, hint: str = TRY_IT) -> None:
        super().__init__(message)
        self.hint = hint


def engine_of(options: EngineOptions) -> LiveEngine:
    """Return an engine that was not started yet: one of this machine, or that of the user's command."""
    command = options.engine_command
    return LiveEngine(options.command()) if command is None else CommandEngine(command)


class CommandEngine(LiveEngine):
    """Runs a command as an engine, measures the link to it, and reports its end, if nobody has asked for that.

    Its `Header` and `Ready` have the settings with those of the command's `change`, which it is sent first.
    """

    def __init__(self, command: EngineCommand, logs: Path | None = None) -> None:
        super().__init__(command.words, logs)
        self._changes = [] if command.change == UNCHANGED else [command.change]
        self._head: Head | None = None
        self._said_before: list[str] = []
        self._may_send = asyncio.Event()
        self._closing = False
        self._pinged_at: float | None = None
        self._round_trips: list[float] = []
        self._measured_at = 0.0

    @property
    def first_words(self) -> str:
        """See `EngineSource.first_words`: the last line of either stream."""
        if self._head is not None:
            return ""
        return next(filter(None, reversed(self._said_before)), self.last_line)

    def dump_stacks(self) -> None:
        """Do nothing: the signal would end ssh, and does not reach the other machine."""

    async def send(self, command: Command) -> None:
        """Send a command, once the header has come. Commands to what sends none are dropped."""
        if isinstance(command, Configure) and self._head is None:
            self._changes.append(command)
            return
        await self._may_send.wait()
        if self._head is not None:
            await super().send(command)

    async def close(self) -> None:
        """End the command. The end of its input, or that of the link, ends an engine on another machine."""
        self._closing = True
        self._may_send.set()
        await super().close()

    # --- what it says -------------------------------------------------------------------------------------------------

    async def events(self) -> AsyncIterator[Event]:
        """Yield its events until it ends. If it is no engine, or ends by itself, a fatal `Failed` is the last."""
        last = Event()
        try:
            async for event in super().events():
                last = await self._seen(event)
                yield last
        except NotAnEngine as refused:
            yield Failed(code="internal", message=str(refused), hint=refused.hint, fatal=True, seq=last.seq, t=last.t)
            return
        if not (self._closing or (isinstance(last, Failed) and last.fatal)):
            yield replace(await self._end(), seq=last.seq, t=last.t)

    async def _seen(self, event: Event) -> Event:
        """React to an event; return it with what is only known on this side."""
        match event:
            case Header():
                event = replace(event, settings=self._configured(event.settings))
                for change in self._changes:
                    await super().send(change)
                self._may_send.set()
            case Ready():
                event = replace(event, settings=self._configured(event.settings))
                self._measure()
            case TurnStarted() | TurnFinished():
                self._measure()
            case Step() if time.monotonic() - self._measured_at >= PING_SECONDS:
                self._measure()
            case Pong():
                event = replace(event, round_trip_ms=self._measured())
        return event

    def _configured(self, settings: Settings) -> Settings:
        for change in self._changes:
            settings = configured(settings, change)
        return settings

    def _measure(self) -> None:
        """Begin to measure the link, unless it is being measured. An engine before protocol 4.4 never answers."""
        if self._pinged_at is None:
            self._ping()

    def _ping(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(encode(Ping()))
            self._pinged_at = self._measured_at = time.monotonic()

    def _measured(self) -> float | None:
        """Return the shortest round trip in milliseconds after the last ping of a measurement, else None."""
        sent_at, self._pinged_at = self._pinged_at, None
        if sent_at is None:
            return None
        self._round_trips.append(1000 * (time.monotonic() - sent_at))
        if len(self._round_trips) < PINGS:
            self._ping()
            return None
        shortest = min(self._round_trips)
        self._round_trips.clear()
        return shortest

    async def _end(self) -> Failed:
        """Return the report of its end."""
        if self._draining is not None:  # its last line may still be on its way
            await asyncio.wait([self._draining], timeout=SECONDS_TO_LEAVE)
        code = self.returncode or 0
        status = f"signal {-code}" if code < 0 else f"exit status {code}"
        words = self.last_line or self.first_words
        said = f": {words.removesuffix('.')}." if words else "."
        if self._head is None:
            message, hint = f"The engine's command ended ({status}) before a word of the protocol{said}", TRY_IT
        else:
            message, hint = f"The engine's command has ended ({status}){said}", "What has come stays; start it again."
        return Failed(code="internal", message=message, hint=hint, fatal=True)

    # --- its lines ----------------------------------------------------------------------------------------------------

    async def _lines(self, stream: asyncio.StreamReader) -> AsyncIterator[bytes | ProtocolError]:
        """Yield its lines from the header on."""
        async for line in super()._lines(stream):
            if isinstance(line, bytes) and line.startswith(ECHO):
                raise NotAnEngine(
                    "The engine's command gives back what it is sent, as a terminal does.",
                    "ssh -T has no terminal at the other end; leave out -t.",
                )
            if self._head is None:
                self._head = self._header_in(line)
            if self._head is not None:
                yield line

    def _header_in(self, line: bytes | ProtocolError) -> Head | None:
        """Return the header in a line; None for what may come before it.

        Raises:
            NotAnEngine: the header is of a version with other commands, or cannot be read; or too much came before it.
        """
        if isinstance(line, ProtocolError):
            raise NotAnEngine(f"The first line of the engine's command cannot be read: {line}.")
        head = read_head(line)
        if head is None:
            self._said_before.append(line.decode(errors="replace").strip()[:MOST_OF_A_LINE])
            if len(self._said_before) > MOST_LINES_BEFORE:
                said = f"; it says: {self.first_words}" if self.first_words else ""
                raise NotAnEngine(f"The engine's command does not speak the protocol{said}.")
            return None
        if head.takes_other_commands:
            version, program = (text[:MOST_OF_A_LINE] for text in (head.version, head.program))
            raise NotAnEngine(
                f"The engine's command speaks version {version} of the protocol ({program}), and this ladechat version "
                f"{VERSION}.",
                "Install the same ladechat on both sides.",
            )
        try:
            decode_event(line)
        except ProtocolError as error:
            raise NotAnEngine(f"The header of the engine's command cannot be read: {error}.") from None
        return head
