"""A live engine: the process beside the UI, as a source of events."""

import asyncio
import codecs
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

from msgspec.structs import asdict
from platformdirs import user_log_path

from ladechat.protocol import (
    MAX_LINE_BYTES,
    WHERE,
    Command,
    Event,
    ProtocolError,
    Settings,
    Shutdown,
    decode_event,
    encode,
)

SECONDS_TO_LEAVE = 3.0
"""How long an engine that was told to end may take before it is killed."""
SECONDS_TO_LOOK_AGAIN = 0.02
LOGS_KEPT = 10
"""Each engine has a log of its own, so that two that run at once do not spoil each other's."""


@dataclass(frozen=True)
class EngineOptions:
    """What an engine is started with."""

    model: str = "demo"
    device: str = "auto"
    dtype: str = "auto"
    quantize: str | None = None
    pool: str | None = None
    passes: str = "compile"
    tensor_parallel: int = 1
    settings: Settings = field(default_factory=Settings)

    def arguments(self) -> Iterator[str]:
        """The command line of `ladechat engine`, after its name."""
        yield from ("--model", self.model, "--device", self.device, "--dtype", self.dtype)
        yield from ("--passes", self.passes, "--tensor-parallel", str(self.tensor_parallel))
        if self.quantize is not None:
            yield from ("--quantize", self.quantize)
        if self.pool is not None:
            yield from ("--pool", self.pool)
        for name, value in asdict(self.settings).items():
            option = name.replace("_", "-")
            if isinstance(value, bool):
                yield f"--{option}" if value else f"--no-{option}"
            elif value is not None:
                yield from (f"--{option}", str(value))


class LiveEngine:
    """Starts `ladechat engine`, talks to it, and sees to it that it ends.

    Args:
        options: what it is started with.
        logs: the folder for its log; by default where the platform has logs.

    Attributes:
        log: the file that keeps what it writes on standard error.
    """

    def __init__(self, options: EngineOptions, logs: Path | None = None) -> None:
        self.options = options
        self._logs = logs or user_log_path("ladechat")
        self.log = self._logs
        self._process: asyncio.subprocess.Process | None = None
        self._started = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._spoke = False

    @property
    def returncode(self) -> int | None:
        """The exit code; None while the engine runs, or before it was started."""
        return self._process.returncode if self._process else None

    async def start(self) -> None:
        """Start the process. It is ready when it says so."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ladechat", "engine", *self.options.arguments()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MAX_LINE_BYTES,
            start_new_session=True,  # Ctrl+C in the terminal is for the UI, which then says what it wants
        )
        self.log = self._logs / f"engine-{datetime.now():%Y%m%d-%H%M%S}-{self._process.pid}.log"
        self._draining = asyncio.create_task(self._drain())
        self._ending = asyncio.create_task(_end_of(self._process))
        self._started.set()

    async def send(self, command: Command) -> None:
        """Send a command, once the engine has been started. One that comes after its end is dropped.

        It waits while the engine reads nothing, at the longest until `close`.
        """
        await self._started.wait()
        if self._process is None:
            return
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(encode(command))
            await self._process.stdin.drain()

    def ask_where(self) -> None:
        """Have the engine write into its log where each of its threads is, whatever they wait for."""
        if self._process is not None and self._spoke:  # before its first word the signal would end it
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(WHERE)

    async def events(self) -> AsyncIterator[Event]:
        """What the engine says, until it ends. A last line that its death cut short is left out.

        What it has started ends with it: workers left behind would hold memory, and the pipes.
        """
        if self._process is None or self._process.stdout is None or self._ending is None:
            raise RuntimeError("The engine was not started.")
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break
            with contextlib.suppress(ProtocolError):
                event = decode_event(line)
                self._spoke = True
                if event is not None:
                    yield event
        await asyncio.wait([self._ending])

    async def close(self) -> None:
        """End the engine and all that it has started: ask, wait a little, then kill.

        One that is frozen, or that reads nothing any more, cannot hold this up.
        """
        self._started.set()
        if self._process is None or self._ending is None or self._draining is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_LEAVE):
                await self.send(Shutdown())
                await asyncio.wait([self._ending])
        if self._process.returncode is None:
            _kill_group_of(self._process)
        await asyncio.wait([self._ending])
        # Its standard error may be held open by what made itself independent of it: that is not waited for.
        await asyncio.wait([self._draining], timeout=SECONDS_TO_LEAVE)
        self._draining.cancel()
        self._process._transport.close()  # type: ignore[attr-defined]  # nothing public closes its pipes

    async def _drain(self) -> None:
        """Keep the engine's standard error in a rotating file, or nowhere if that cannot be.

        It is read in any case: a full pipe would stop the engine.
        """
        assert self._process is not None and self._process.stderr is not None
        handler: logging.Handler = logging.NullHandler()
        with contextlib.suppress(OSError):
            self._logs.mkdir(parents=True, exist_ok=True)
            _tidy(self._logs)
            handler = _Log(self.log, maxBytes=1_000_000, backupCount=2, encoding="utf-8")
            handler.terminator = ""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with contextlib.closing(handler):
            while part := await self._process.stderr.read(1 << 16):
                handler.emit(logging.LogRecord("engine", logging.INFO, "", 0, decoder.decode(part), None, None))


class _Log(RotatingFileHandler):
    """A log that says nothing when it cannot be written: there is a screen to be kept clean."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - as logging calls it
        """Leave it out."""


async def _end_of(process: asyncio.subprocess.Process) -> None:
    """Wait until a process has ended, and end what it has started.

    asyncio's own `wait` also waits for every other process that holds one of the pipes.
    """
    while process.returncode is None:  # noqa: ASYNC110 - asyncio lets nobody know
        await asyncio.sleep(SECONDS_TO_LOOK_AGAIN)
    _kill_group_of(process)


def _kill_group_of(process: asyncio.subprocess.Process) -> None:
    """Kill a process, if it still runs, and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # as a rule, nobody is left
        os.killpg(process.pid, signal.SIGKILL)


def _tidy(folder: Path) -> None:
    """Remove all logs but the newest, each with what was rotated out of it. One that is being written lives on."""
    logs = sorted(folder.glob("engine-*.log"))  # their names begin with the time
    for old in logs[: -LOGS_KEPT + 1]:
        for part in folder.glob(f"{old.name}*"):
            part.unlink(missing_ok=True)
