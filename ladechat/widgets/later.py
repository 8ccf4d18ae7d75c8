"""Calls after a while: one that comes however late the program is, frames, and what takes long."""

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from time import monotonic

from textual.message_pump import MessagePump
from textual.widget import Widget

FRAMES_PER_SECOND = 32
"""As often as the engine writes steps."""
SECONDS_BETWEEN_FRAMES = 0.8 / FRAMES_PER_SECOND
"""At least: less than between two writes of the engine, so that what comes a little early is drawn as it comes."""


def call_later(widget: MessagePump, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `callback` among the widget's messages in so many seconds; `cancel` what is returned to call it off.

    `Widget.set_timer` skips a tick that it is late for, even its only one: where the machine paused for longer than
    `seconds` while that timer started, a panel would wait forever. Nor does this hold the screen that it was called
    from, which the context of a timer would, also of one that was called off, until its time comes.
    """
    return asyncio.get_running_loop().call_later(seconds, widget.call_next, callback, context=Context())


class Frames:
    """Draws when there is something to draw: at once after a pause, and after that not too often. Else nothing runs.

    Args:
        widget: among whose messages it is drawn.
        draw: what draws.
    """

    def __init__(self, widget: Widget, draw: Callable[[], object]) -> None:
        self._widget, self._draw = widget, draw
        self._drawn_at = -math.inf
        self._due_at = math.inf
        self._waiting: asyncio.TimerHandle | None = None

    def due(self, seconds: float = 0.0) -> None:
        """Draw in so many seconds, or as soon after that as may be; all that comes until then is in the same frame."""
        now = monotonic()
        due_at = max(now + seconds, self._drawn_at + SECONDS_BETWEEN_FRAMES)
        if due_at < self._due_at:
            self.cancel()
            self._due_at = due_at
            self._waiting = call_later(self._widget, due_at - now, self._frame)

    def go_on(self) -> None:
        """Draw the next frame of what moves by itself."""
        self.due(1 / FRAMES_PER_SECOND)

    def cancel(self) -> None:
        """Draw no more what is due now."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting, self._due_at = None, math.inf

    def _frame(self) -> object:
        self._waiting, self._due_at = None, math.inf
        self._drawn_at = monotonic()
        return self._draw()


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
