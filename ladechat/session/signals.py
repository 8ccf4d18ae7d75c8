"""Leaving in order when the system asks for it: the terminal was closed, or the machine goes down."""

import asyncio
import signal
from collections.abc import Callable


def leave_on_signals(leave: Callable[[int], object]) -> None:
    """Have the running event loop call `leave` with the exit code (128 + the signal's number) on SIGHUP and SIGTERM.

    Only in the main thread signals can be handled; elsewhere the system's own way, the end of the process, remains.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, leave, 128 + number)
        except (RuntimeError, ValueError, NotImplementedError):
            return
