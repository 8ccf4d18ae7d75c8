"""An orderly exit when the system requests it: the terminal was closed, or the machine shuts down."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable

SECONDS_TO_LEAVE = 10.0
"""The time limit for the exit. Ending a frozen engine takes three seconds of it."""
SECONDS_TO_GIVE_UP = 1.0
"""The time limit for the last action: the terminal that it is for may be gone."""


def leave_on_signals(leave: Callable[[int], object], give_up: Callable[[], object] = lambda: None) -> None:
    """Make the running event loop call `leave` with the exit code (128 + signal number) on SIGHUP and SIGTERM.

    A loop that is busy, or blocked by a terminal that is gone, cannot call it: then `give_up` is called in a thread,
    and the process ends. The time limit counts from the signal. Signals can only be handled in the main thread; in
    others the system's default remains, the end of the process.
    """
    loop = asyncio.get_running_loop()

    def handle(number: int, _: object) -> None:
        code = 128 + number
        deadline = threading.Timer(SECONDS_TO_LEAVE, _end, (code, give_up))
        deadline.daemon = True
        deadline.start()
        try:
            loop.call_soon_threadsafe(leave, code)
        except RuntimeError:  # the loop has ended, and the program is about to
            sys.exit(code)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, handle)


def _end(code: int, give_up: Callable[[], object]) -> None:
    giving_up = threading.Thread(target=give_up, daemon=True)
    giving_up.start()
    giving_up.join(SECONDS_TO_GIVE_UP)
    os._exit(code)
