"""Ctrl+C while modules are imported, which cannot be interrupted by an exception: they may turn it into another one."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

INTERRUPTED = 130
"""The exit code after Ctrl+C."""


@contextlib.contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """Within it Ctrl+C ends the process at once and without a word, unless somebody has it ignored or handled."""
    usual = signal.default_int_handler
    if signal.getsignal(signal.SIGINT) is not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
