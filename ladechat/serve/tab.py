"""The app of one browser tab: a process with an engine of its own."""

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence

from ladechat.terminal import PAGE_DRIVER

SECONDS_TO_END = 8.0
"""How long an app may take to end. One whose engine is frozen takes three of these seconds."""
LINES_BEFORE = 10
"""How many lines the app may print before it begins to draw."""
BEGIN, DATA, META = b"__GANGLION__\n", b"D", b"M"
"""Textual's markers: the line before the first packet; a packet with terminal data; a packet about the terminal."""


class Tab:
    """A process that draws with `PageDriver`. It ends in an orderly way when its standard input does.

    It has a process group of its own: Ctrl+C in the server's terminal is for the server, which then ends its tabs. Its
    standard error is that of the server.
    """

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout

    @classmethod
    async def start(cls, command: Sequence[str], columns: int, rows: int) -> "Tab":
        """Start an app on a screen of `columns` × `rows`."""
        environment = {
            **os.environ,
            "TEXTUAL_DRIVER": PAGE_DRIVER,
            # The abilities of the terminal in the page, wherever the server was started.
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "COLORTERM": "truecolor",
            "TERM": "xterm-256color",
            "COLUMNS": str(columns),
            "ROWS": str(rows),
        }
        return cls(
            await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, env=environment, start_new_session=True
            )
        )

    async def drawn(self) -> AsyncIterator[bytes]:
        """Yield what the app writes to its terminal, until it ends; nothing if it ends before it draws."""
        for _ in range(LINES_BEFORE):
            line = await self._output.readline()
            if line == BEGIN or not line:
                break
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                kind = await self._output.readexactly(1)
                size = int.from_bytes(await self._output.readexactly(4), "big")
                payload = await self._output.readexactly(size)
                if kind == DATA:
                    yield payload

    async def type(self, text: str) -> None:
        """Send keys, mouse and pasted text to the app, in a terminal's encoding."""
        await self._send(DATA, text.encode(errors="replace"))

    async def tell(self, kind: str, **fields: int) -> None:
        """Send an event of the terminal to the app: `resize` with `width` and `height`, `focus`, or `blur`."""
        await self._send(META, json.dumps({"type": kind, **fields}).encode())

    async def _send(self, kind: bytes, payload: bytes) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):  # it has ended
            self._input.write(kind + len(payload).to_bytes(4, "big") + payload)
            await self._input.drain()

    async def end(self) -> None:
        """End the app, and wait until it has ended. `drawn` must not be read any more."""
        self._input.close()
        try:
            # Reads on meanwhile: an app that is blocked on a write would not notice the end of its input.
            await asyncio.wait_for(self._process.communicate(), SECONDS_TO_END)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.communicate()  # a pipe that nobody reads to its end is never closed
