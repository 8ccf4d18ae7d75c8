"""Ctrl+C while modules are imported, which cannot be interrupted by an exception: they may turn it into another one.

It is imported before all else, so it imports little.
"""

import os
import signal

INTERRUPTED = 130
"""The exit code after Ctrl+C."""


class ended_by_ctrl_c:  # noqa: N801 - it reads as what it does: `with ended_by_ctrl_c(): import …`
    """A context in which Ctrl+C ends the process at once and without a word, unless somebody has it ignored or handled.

    In other threads than the main one, where Ctrl+C does not come, it does nothing.
    """

    def __enter__(self) -> None:
        self._set = False
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
            except ValueError:  # another thread
                return
            self._set = True

    def __exit__(self, *_: object) -> None:
        if self._set:
            signal.signal(signal.SIGINT, signal.default_int_handler)
