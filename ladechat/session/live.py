"""A live engine as a source of events: a process of its own that speaks the protocol over its pipes."""

import asyncio
import codecs
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path

from platformdirs import user_log_path

from ladechat.files import PRIVATE, write_whole
from ladechat.protocol import MAX_LINE_BYTES, WHERE, Command, Event, Failed, ProtocolError, Shutdown, encode
from ladechat.session.engine import Order

SECONDS_TO_LEAVE = 3.0
"""The time an engine has to end after `shutdown` before it is killed."""
BYTES_OF_A_LOG = 1_000_000
MOST_OF_A_LINE = 500
"""The number of characters of a log's last line that are shown."""
MOST_LOGS = 10
"""The number of logs. Each engine has a log of its own, so that two at once do not write to one file."""


class LiveEngine:
    """Starts an engine, exchanges lines with it, and ensures that it ends.

    Args:
        command: its command line, the program first; `ladechat.engine_options` has that of ladechat's own engine.
        logs: the folder for its log; by default the platform's folder for logs.

    Attributes:
        log: the file with what it writes to standard error.
        left_out: the number of its lines that were no events, or events out of order.
    """

    def __init__(self, command: Sequence[str], logs: Path | None = None) -> None:
        self._command = tuple(command)
        self._logs = logs or user_log_path("ladechat")
        self.log = self._logs
        self._process: asyncio.subprocess.Process | None = None
        self._started = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._spoke = False
        self._end_of_log = ""
        self.left_out = 0

    @property
    def returncode(self) -> int | None:
        """The exit code; None while the engine runs, or before it was started."""
        return self._process.returncode if self._process else None

    @property
    def first_words(self) -> str:
        """See `EngineSource.first_words`: ladechat's own engine begins with its header."""
        return ""

    @property
    def last_line(self) -> str:
        """The last line that it has written to standard error; "" if there is none. It does not need a writable log."""
        lines = self._end_of_log.split("\n")
        return next((line.strip()[:MOST_OF_A_LINE] for line in reversed(lines) if line.strip()), "")

    async def start(self) -> None:
        """Start the process. Its `ready` event says when it can be used."""
        loop = asyncio.get_running_loop()
        transport, pipes = await loop.subprocess_exec(
            lambda: _Pipes(MAX_LINE_BYTES, loop),
            *self._command,
            start_new_session=True,  # Ctrl+C in the terminal goes to the UI alone, which then sends commands
        )
        self._process = asyncio.subprocess.Process(transport, pipes, loop)
        self.log = self._logs / f"engine-{datetime.now():%Y%m%d-%H%M%S}-{self._process.pid}.log"
        self._draining = asyncio.create_task(self._drain())
        self._ending = asyncio.create_task(_end_of(self._process, pipes))
        self._started.set()

    async def send(self, command: Command) -> None:
        """Send a command, once the engine was started. Commands after its end are dropped.

        It waits while the engine does not read, at most until `close`.
        """
        await self._started.wait()
        if self._process is None:
            return
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(encode(command))
            await self._process.stdin.drain()

    def dump_stacks(self) -> None:
        """Ask a stuck engine to write its thread stacks into its log."""
        if self._process is not None and self._spoke:  # before its header the signal would end it
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(WHERE)

    async def events(self) -> AsyncIterator[Event]:
        """Yield the engine's events, until it ends. A last line without its newline is skipped.

        Lines that are no events, or events out of order, are skipped. The first of them is reported by an event of the
        UI, after one of the engine's, since a recording has to begin with its header.

        Processes that the engine has started are killed at its end: they would hold memory and the pipes.
        """
        if self._process is None or self._process.stdout is None or self._ending is None:
            raise RuntimeError("The engine was not started.")
        order = Order(restarts=False)
        last: Event | None = None
        unsaid: ProtocolError | None = None
        async for line in self._lines(self._process.stdout):
            try:
                if isinstance(line, ProtocolError):
                    raise line
                event = order.event(line)
            except ProtocolError as error:
                unsaid = error if not self.left_out else unsaid
                self.left_out += 1
                self._write_log(f"A line of the engine was left out: {error}.\n")
                event = None
            else:
                self._spoke = True
            if event is not None:
                yield event
                last = event
            if unsaid is not None and last is not None:
                yield _left_out(unsaid, last)
                unsaid = None
        if unsaid is not None:
            yield _left_out(unsaid, Event())
        await asyncio.wait([self._ending])

    async def _lines(self, stream: asyncio.StreamReader) -> AsyncIterator[bytes | ProtocolError]:
        """Yield whole lines with their line ends; for a line that is too long, an error before its end has come."""
        too_long = False
        while True:
            try:
                line = await stream.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await stream.readexactly(error.consumed)
                if not too_long:
                    yield ProtocolError(f"it is longer than {MAX_LINE_BYTES // 2**20} MiB")
                too_long = True
            except asyncio.IncompleteReadError:
                return
            else:
                if not too_long:
                    yield line
                too_long = False

    async def close(self) -> None:
        """End the engine and all processes that it has started: ask, wait a little, then kill.

        An engine that is frozen, or that no longer reads, cannot delay this.
        """
        self._started.set()
        if self._process is None or self._ending is None or self._draining is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_LEAVE):
                await self.send(Shutdown())
                if self._process.stdin is not None:
                    self._process.stdin.close()  # its end ends what does not know the command, or does not get it
                await asyncio.wait([self._ending])
        if self._process.returncode is None:
            _kill_group_of(self._process)
        await asyncio.wait([self._ending])
        # A process that has left the engine's group may hold its standard error open: wait for it no longer than this.
        await asyncio.wait([self._draining], timeout=SECONDS_TO_LEAVE)
        self._draining.cancel()
        self._process._transport.close()  # type: ignore[attr-defined]  # nothing public closes its pipes

    async def _drain(self) -> None:
        """Copy the engine's standard error to its log. It is read in any case: a full pipe would block the engine."""
        assert self._process is not None and self._process.stderr is not None
        with contextlib.suppress(OSError):
            self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            _tidy(self._logs)
        self._write_log("")
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while part := await self._process.stderr.read(1 << 16):
            text = decoder.decode(part)
            self._end_of_log = (self._end_of_log + text)[-2 * MOST_OF_A_LINE :]
            self._write_log(text)

    def _write_log(self, text: str) -> None:
        """Append to the log, which only its owner can read, if that can be written. A log that was removed, as by
        another ladechat that removes old logs, is created again; of a long one the two parts before stay.
        """
        line, first = text.encode(errors="replace"), self.log.with_name(f"{self.log.name}.1")
        with contextlib.suppress(OSError):
            if self.log.exists() and self.log.stat().st_size + len(line) > BYTES_OF_A_LOG:
                if first.exists():
                    first.replace(first.with_suffix(".2"))
                self.log.replace(first)
            descriptor = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE)
            try:
                write_whole(descriptor, line)
            finally:
                os.close(descriptor)


def _left_out(error: ProtocolError, after: Event) -> Failed:
    """Return the event that reports an error in a line, with the sequence number and time of the event before it."""
    message = f"Something that the engine said cannot be read and is left out: {error}."
    hint = "The engine's log names all such lines; if answers are broken, start the engine again."
    return Failed(code="internal", message=message, hint=hint, seq=after.seq, t=after.t)


class _Pipes(asyncio.subprocess.SubprocessStreamProtocol):
    """The pipes of a process, as asyncio has them, and an event for its end.

    asyncio's own `wait` also waits for every other process that holds one of the pipes.
    """

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.ended = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.ended.set()


async def _end_of(process: asyncio.subprocess.Process, pipes: _Pipes) -> None:
    """Wait until a process has ended, then kill the rest of its group."""
    await pipes.ended.wait()
    _kill_group_of(process)


def _kill_group_of(process: asyncio.subprocess.Process) -> None:
    """Kill a process and those that it has started, if they still run."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # usually none of them still runs
        os.killpg(process.pid, signal.SIGKILL)


def _tidy(folder: Path) -> None:
    """Remove all logs but the newest, each with its rotated parts. A log that is still written to is created again."""
    logs = sorted(folder.glob("engine-*.log"))  # their names begin with the time
    for old in logs[: -MOST_LOGS + 1]:
        for part in folder.glob(f"{old.name}*"):
            part.unlink(missing_ok=True)
