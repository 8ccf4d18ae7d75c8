"""A live engine: the process beside the UI, as a source of events."""

import asyncio
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

from platformdirs import user_log_path

from ladechat.protocol import (
    MAX_LINE_BYTES,
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
LOGS_KEPT = 10
"""Each engine has a log of its own, so that two that run at once do not spoil each other's."""


@dataclass(frozen=True)
class EngineOptions:
    """What an engine is started with."""

    model: str = "demo"
    device: str = "auto"
    dtype: str = "auto"
    settings: Settings = field(default_factory=Settings)

    def arguments(self) -> Iterator[str]:
        """The command line of `ladechat engine`, after its name."""
        settings = self.settings
        yield from ("--model", self.model, "--device", self.device, "--dtype", self.dtype)
        yield from ("--decoder", settings.decoder, "--window", str(settings.window))
        yield from ("--ngram", str(settings.ngram), "--guesses", str(settings.guesses))
        yield "--pool-prompt" if settings.pool_prompt else "--no-pool-prompt"
        yield "--pool-accepted" if settings.pool_accepted else "--no-pool-accepted"


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
        self._started.set()

    async def send(self, command: Command) -> None:
        """Send a command, once the engine has been started. One that comes after its end is dropped."""
        await self._started.wait()
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(encode(command))
            await self._process.stdin.drain()

    async def events(self) -> AsyncIterator[Event]:
        """What the engine says, until it ends. A last line that its death cut short is left out."""
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("The engine was not started.")
        async for line in self._process.stdout:
            if not line.endswith(b"\n"):
                break
            with contextlib.suppress(ProtocolError):
                event = decode_event(line)
                if event is not None:
                    yield event
        await self._process.wait()

    async def close(self) -> None:
        """End the engine and all that it has started: ask, wait a little, then kill.

        One that is frozen, or that reads nothing any more, cannot hold this up.
        """
        if self._process is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_LEAVE):
                await self.send(Shutdown())
                await self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):  # as a rule, nobody is left
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        if self._draining is not None:
            await self._draining

    async def _drain(self) -> None:
        """Keep the engine's standard error in a rotating file, or nowhere if that cannot be.

        It is read in any case: a full pipe would stop the engine.
        """
        assert self._process is not None and self._process.stderr is not None
        handler: logging.Handler = logging.NullHandler()
        with contextlib.suppress(OSError):
            self._logs.mkdir(parents=True, exist_ok=True)
            _tidy(self._logs)
            handler = RotatingFileHandler(self.log, maxBytes=1_000_000, backupCount=2, errors="replace")
        with contextlib.closing(handler):
            async for line in self._process.stderr:
                text = line.decode(errors="replace").rstrip()
                handler.emit(logging.LogRecord("engine", logging.INFO, "", 0, text, None, None))


def _tidy(folder: Path) -> None:
    """Remove all logs but the newest, each with what was rotated out of it. One that is being written lives on."""
    logs = sorted(folder.glob("engine-*.log"))  # their names begin with the time
    for old in logs[: -LOGS_KEPT + 1]:
        for part in folder.glob(f"{old.name}*"):
            part.unlink(missing_ok=True)
