"""Leaving in order when the system asks for it: the terminal was closed, or the machine goes down."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable

SECONDS_TO_LEAVE = 10.0
"""How long leaving may take. An engine that is frozen takes three of them."""
SECONDS_TO_GIVE_UP = 1.0
"""How long what is done last may take: the terminal that it is for may be gone."""


def leave_on_signals(leave: Callable[[int], object], give_up: Callable[[], object] = lambda: None) -> None:
    """Have the running event loop call `leave` with the exit code (128 + the signal's number) on SIGHUP and SIGTERM.

    A loop that is busy, or waits for ever for a terminal that is gone, does not get to that: then `give_up` is called
    in a thread of its own, and the process ends. The time runs from the signal on, whatever the loop does.
    Only in the main thread signals can be handled; elsewhere the system's own way, the end of the process, remains.
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
