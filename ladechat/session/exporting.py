"""An export of a conversation from within the app: `ladechat export`, run beside it, so that the screen goes on."""

import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from ladechat.protocol import Event, encode
from ladechat.session.recording import SUFFIX
from ladechat.terminal import PROGRESS_LINES

COMMAND = (sys.executable, "-P", "-m", "ladechat", "export")
"""`-P` keeps the working directory off `sys.path`, as for an engine."""
SECONDS_TO_LEAVE = 3.0
"""So long an interrupted export has to delete its unfinished file; then it is killed."""
FAILURE = re.compile("(?:ladechat|Error): (.+)")
"""Why there is no file, as the program says it, or its command line."""


class ExportFailed(Exception):
    """Why there is no file, in a sentence."""


async def export(events: Sequence[Event], arguments: Sequence[str], progress: Callable[[str], None]) -> None:
    """Make a file of these events, which go through a private file that is gone at the end, whatever that is.

    Cancelled, it ends the process first; of a file that was begun nothing is left.

    Args:
        events: of a recording, its header first.
        arguments: what `ladechat export` takes behind the recording.
        progress: is told what is being done, as in "drawing 45%".

    Raises:
        ExportFailed: there is no file.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="ladechat-", ignore_cleanup_errors=True) as folder:
            recording = Path(folder) / f"conversation{SUFFIX}"
            with recording.open("wb") as file:
                await asyncio.to_thread(file.writelines, map(encode, events))
            await _run([*COMMAND, str(recording), *arguments], progress)
    except OSError as error:
        where = tempfile.gettempdir()
        raise ExportFailed(f"Nothing is exported: {error.strerror or error}; make room in {where}.") from error


async def _run(command: Sequence[str], progress: Callable[[str], None]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, PROGRESS_LINES: "1"},
        start_new_session=True,
    )
    assert process.stderr is not None
    why = "The export ended without a word; try another format."
    try:
        async for line in _lines(process.stderr):
            if sentence := FAILURE.match(line):
                why = sentence[1]
            else:
                progress(line)
        await process.wait()
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode:
        raise ExportFailed(why)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """The lines, without what is longer than the reader takes."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue
        if not line:
            return
        yield line.decode(errors="replace").strip()


async def _end(process: asyncio.subprocess.Process) -> None:
    """As Ctrl+C would: it takes away the part of the file that it has written."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), SECONDS_TO_LEAVE)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
