"""Exports a conversation from within the app: runs `ladechat export` in a process, so that the UI stays responsive."""

import asyncio
import contextlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ladechat.protocol import MAX_LINE_BYTES, Event, encode
from ladechat.session.recordings.recorder import SUFFIX
from ladechat.terminal import PROGRESS_LINES

COMMAND = (sys.executable, "-P", "-m", "ladechat", "export")
"""`-P` keeps the working directory off `sys.path`, as for an engine."""
SECONDS_TO_LEAVE = 3.0
"""The time that an interrupted export has to delete its unfinished file before it is killed."""
MOST_OF_PROGRESS = 1 << 16
"""The longest line, in characters, that is taken for a state of progress."""
FAILURE = re.compile("(?:ladechat|Error): (.+)")
"""Matches the reason for a failure, as the program or its command line reports it."""


class ExportFailed(Exception):
    """The reason why there is no file, in a sentence."""


async def export(events: Sequence[Event], arguments: Sequence[str], progress: Callable[[str], None]) -> None:
    """Export these events, by way of a private temporary file.

    If it is cancelled, it ends the process first, and an unfinished file is deleted.

    Args:
        events: the events of a recording, its header first.
        arguments: the arguments of `ladechat export` after the recording.
        progress: called with the present state, as in "drawing 45%".

    Raises:
        ExportFailed: no file was written.
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
        limit=MAX_LINE_BYTES,
        env={**os.environ, PROGRESS_LINES: "1"},
        start_new_session=True,
    )
    assert process.stderr is not None
    why = "The export ended without a word; try another format."
    try:
        async for raw in process.stderr:
            line = raw.decode(errors="replace").strip()
            if sentence := FAILURE.match(line):
                why = sentence[1]
            elif len(line) <= MOST_OF_PROGRESS:
                progress(line)
        await process.wait()
    finally:
        if process.returncode is None:
            await _end(process)
    if process.returncode:
        raise ExportFailed(why)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process as Ctrl+C would, so that it deletes its unfinished file."""
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.wait(), SECONDS_TO_LEAVE)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
