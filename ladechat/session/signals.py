"""Leaving in order when the system asks for it: the terminal was closed, or the machine goes down."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable

SECONDS_TO_LEAVE = 10.0
"""How long leaving may take. An engine that is frozen takes three of them."""


def leave_on_signals(leave: Callable[[int], object]) -> None:
    """Have the running event loop call `leave` with the exit code (128 + the signal's number) on SIGHUP and SIGTERM.

    Whoever draws on a terminal that is gone may wait for it for ever; then the process ends all the same.
    Only in the main thread signals can be handled; elsewhere the system's own way, the end of the process, remains.
    """

    def handle(code: int) -> None:
        deadline = threading.Timer(SECONDS_TO_LEAVE, os._exit, (code,))
        deadline.daemon = True
        deadline.start()
        leave(code)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, handle, 128 + number)
        except (RuntimeError, ValueError, NotImplementedError):
            return
