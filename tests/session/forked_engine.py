"""A real engine for a session: a process that begins as a copy of this one, which has imported torch already."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from ladechat.protocol import Command, Event, Settings
from tests.engine.forked import Forked


class ForkedEngine:
    """An engine that loads a model from the disk.

    Args:
        model: a folder, or a GGUF file.
        settings: what it begins with.
    """

    last_line = first_words = ""

    def __init__(self, model: Path, settings: Settings) -> None:
        self._model, self._settings = model, settings
        self._line: Forked | None = None

    async def start(self) -> None:
        """Start the process."""
        self._line = Forked(str(self._model), "auto", self._settings, passes="exact")

    async def send(self, command: Command) -> None:
        """Send a command, unless the process has ended."""
        assert self._line is not None
        with contextlib.suppress(BrokenPipeError):
            self._line.send(command)

    def dump_stacks(self) -> None:
        """Do nothing: it is never asked for."""

    async def events(self) -> AsyncIterator[Event]:
        """Yield what it says."""
        assert self._line is not None
        while (event := await asyncio.to_thread(self._line._next)) is not None:
            yield event

    async def close(self) -> None:
        """End the process."""
        if self._line is not None:
            self.kill()
            await asyncio.to_thread(self._line.process.wait)

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        assert self._line is not None
        self._line.process.kill()
