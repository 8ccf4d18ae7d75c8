"""Timers: one that fires even when the event loop is late, one for frames, and one that throttles slow actions."""

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from time import monotonic

from textual.message_pump import MessagePump
from textual.widget import Widget

FRAMES_PER_SECOND = 32
"""The rate at which the engine writes steps."""
SECONDS_BETWEEN_FRAMES = 0.8 / FRAMES_PER_SECOND
"""Minimum; less than the time between two writes of the engine, so that an event slightly early is drawn at once."""


def call_later(widget: MessagePump, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `callback` among the widget's messages after `seconds`; return a handle whose `cancel` prevents the call.

    Unlike this, `Widget.set_timer` skips a tick that it is late for, even its only one: if the machine paused for
    longer than `seconds` while that timer started, a panel would wait forever.

    The caller's context is not captured: the loop holds a cancelled timer until it would have been due, and with its
    context a screen that was closed meanwhile.
    """
    return asyncio.get_running_loop().call_later(seconds, widget.call_next, callback, context=Context())


class Frames:
    """Draws on request: immediately after a pause, then at a limited rate. Nothing runs while there is nothing to draw.

    Args:
        widget: handles the drawing among its messages.
        draw: draws a frame.
    """

    def __init__(self, widget: Widget, draw: Callable[[], object]) -> None:
        self._widget, self._draw = widget, draw
        self._drawn_at = -math.inf
        self._due_at = math.inf
        self._waiting: asyncio.TimerHandle | None = None

    def due(self, seconds: float = 0.0) -> None:
        """Request a frame after `seconds`, or as soon after as the rate allows; requests until then share it."""
        now = monotonic()
        due_at = max(now + seconds, self._drawn_at + SECONDS_BETWEEN_FRAMES)
        if due_at < self._due_at:
            self.cancel()
            self._due_at = due_at
            self._waiting = call_later(self._widget, due_at - now, self._frame)

    def go_on(self) -> None:
        """Request the next frame of an animation."""
        self.due(1 / FRAMES_PER_SECOND)

    def cancel(self) -> None:
        """Cancel the requested frame."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting, self._due_at = None, math.inf

    def _frame(self) -> object:
        self._waiting, self._due_at = None, math.inf
        self._drawn_at = monotonic()
        return self._draw()


class Throttle:
    """Throttle: runs a slow action at most every `seconds`, and for at most `share` of the time.

    Args:
        widget: handles the action among its messages.
        action: the slow action.
        seconds: minimum time between two runs.
        share: maximum share of the time, 0 to 1.
    """

    def __init__(self, widget: Widget, action: Callable[[], None], seconds: float, share: float) -> None:
        self._widget, self._action, self._seconds, self._share = widget, action, seconds, share
        self._due_at = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    def soon(self) -> None:
        """Run the action immediately, or as soon as the limits allow."""
        wait = self._due_at - monotonic()
        if self._waiting is None:
            if wait <= 0:
                self._do()
            else:
                self._waiting = call_later(self._widget, wait, self.at_once_if_waiting)

    def at_once_if_waiting(self) -> None:
        """Run the action now if a run is pending."""
        if self._waiting is not None:
            self.cancel()
            self._do()

    def cancel(self) -> None:
        """Cancel the pending run."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _do(self) -> None:
        started = monotonic()
        self._action()
        now = monotonic()
        self._due_at = now + max(self._seconds, (now - started) / self._share)
