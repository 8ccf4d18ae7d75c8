"""Reads a recording on while it is on the screen."""

import asyncio
from collections.abc import Callable

from ladechat.session.replay import Recording

LINES_AT_ONCE = 64
"""So many lines are read between two looks at keys and frames: a millisecond's work."""


async def read_on(recording: Recording, part_read: Callable[[], None]) -> None:
    """Read the rest, a little at a time; another thread waits for the disk.

    Args:
        recording: not complete.
        part_read: told whenever there is more of it, and at the end.
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
