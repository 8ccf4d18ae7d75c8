"""A call after a while that always comes, be the program ever so late."""

import asyncio
from collections.abc import Callable
from time import monotonic

from textual.widget import Widget


def call_later(widget: Widget, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `callback` among the widget's messages in so many seconds; `cancel` what is returned to call it off.

    `Widget.set_timer` skips a tick that it is late for, even its only one: where the machine paused for longer than
    `seconds` while that timer started, a panel would wait forever.
    """
    return asyncio.get_running_loop().call_later(seconds, widget.call_next, callback)


class Seldom:
    """Does something that takes long as soon as that is due: not too often, and for no more than a share of the time.

    Args:
        widget: among whose messages it is done.
        action: what is done.
        seconds: between two times, at least.
        share: of the time, at most.
    """

    def __init__(self, widget: Widget, action: Callable[[], None], seconds: float, share: float) -> None:
        self._widget, self._action, self._seconds, self._share = widget, action, seconds, share
        self._due_at = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    def soon(self) -> None:
        """Do it at once, or when it is due."""
        wait = self._due_at - monotonic()
        if self._waiting is None:
            if wait <= 0:
                self._do()
            else:
                self._waiting = call_later(self._widget, wait, self.at_once_if_waiting)

    def at_once_if_waiting(self) -> None:
        """Do it now, if it waits to be done."""
        if self._waiting is not None:
            self.cancel()
            self._do()

    def cancel(self) -> None:
        """Do not do it any more."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _do(self) -> None:
        started = monotonic()
        self._action()
        now = monotonic()
        self._due_at = now + max(self._seconds, (now - started) / self._share)
