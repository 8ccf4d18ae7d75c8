"""Reads the rest of a recording while it is shown."""

import asyncio
from collections.abc import Callable

from ladechat.session.recordings.recording import Recording

LINES_AT_ONCE = 64
"""The number of lines read between two frames: about a millisecond of work."""


async def read_on(recording: Recording, part_read: Callable[[], None]) -> None:
    """Read the rest, a little at a time; another thread waits for the disk.

    Args:
        recording: a recording that was not read completely.
        part_read: called after each part, and at the end.
    """
    while not recording.complete:
        try:
            lines = await asyncio.to_thread(recording.fetch)
        except OSError as error:
            recording.break_off(error)
        else:
            for start in range(0, max(len(lines), 1), LINES_AT_ONCE):
                recording.take(lines[start : start + LINES_AT_ONCE])
                await asyncio.sleep(0)
        part_read()
