"""Handles Ctrl+C during imports, where no exception can be raised: modules may convert it to another one.

It is imported before everything else, so it imports little.
"""

import os
import signal

INTERRUPTED = 130
"""The exit code after Ctrl+C."""


class ended_by_ctrl_c:  # noqa: N801 - it reads as what it does: `with ended_by_ctrl_c(): import …`
    """A context in which Ctrl+C ends the process at once and silently, unless it is ignored or has another handler.

    It does nothing outside the main thread, since only the main thread receives Ctrl+C.
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
