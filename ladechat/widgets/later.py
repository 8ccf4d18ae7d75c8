"""Timers that fire even when the event loop is late, frames, limits of slow actions, and tasks that run for long."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from time import monotonic
from types import FunctionType
from typing import Any, cast

from textual._context import active_app, active_message_pump
from textual.message_pump import MessagePump
from textual.timer import Timer
from textual.widget import Widget
from textual.worker import Worker

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
    """Draws on request, among the messages of a widget: immediately after a pause, then at a limited rate. Nothing runs
    while there is nothing to draw.
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
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting, self._due_at = None, math.inf

    def _frame(self) -> object:
        self._waiting, self._due_at = None, math.inf
        self._drawn_at = monotonic()
        return self._draw()


class Throttle:
    """Runs an action, among the messages of a widget, at most every `seconds`, and for at most `share` (0 to 1) of the
    time. A run that has to wait is delayed by `joining` seconds more, so that more requests share it.
    """

    def __init__(
        self, widget: Widget, action: Callable[[], object], seconds: float, *, share: float = 1.0, joining: float = 0.0
    ) -> None:
        self._widget, self._action, self._seconds, self._share = widget, action, seconds, share
        self._joining = joining
        self._due_at = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    @property
    def waits(self) -> bool:
        return self._waiting is not None

    def soon(self) -> None:
        """Run the action immediately, or as soon as the limits allow."""
        wait = self._due_at - monotonic()
        if wait <= 0 or not self._widget.is_running:
            self._do()
        elif self._waiting is None:
            self._waiting = call_later(self._widget, wait + self._joining, self.at_once_if_waiting)

    def at_once_if_waiting(self) -> None:
        """Run the action now if a run is pending."""
        if self._waiting is not None:
            self._do()

    def cancel(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _do(self) -> None:
        self.cancel()
        started = monotonic()
        self._action()
        now = monotonic()
        self._due_at = now + max(self._seconds, (now - started) / self._share)


Work = Callable[..., Coroutine[Any, Any, Any]]
TEXTUALS: tuple[Work, ...] = (MessagePump._process_messages, Timer._run_timer, Worker._run)
"""Textual's long-running coroutines. Others need the context of the pump that handles the message: without
it, a widget that waits for its own removal would wait forever."""


class _LastingTask(asyncio.Task[Any]):
    """A task whose context, and that of its callbacks, is as if the app itself had created it."""

    def __init__(self, work: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._of_app = copy_context()
        if active_app in self._of_app:
            self._of_app.run(active_message_pump.set, self._of_app[active_app])
        super().__init__(work, **{**options, "context": self._of_app})

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        super().add_done_callback(fn, context=self._of_app if context is None else context)


def detach_long_tasks(*own: Work) -> None:
    """Make long-running tasks of this event loop hold only the app in their context, and so no closed screen in memory.

    Each task copies the context in which it is created. Textual's context holds the message pump that is handling a
    message (`active_message_pump`). For example, a scroll bar of the chat created while a race handles a message would
    keep the race, with all its answers, in memory for as long as the chat exists.

    Args:
        own: coroutine functions in addition to Textual's.
    """
    lasting = {cast(FunctionType, work).__code__ for work in (*TEXTUALS, *own)}

    def new_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        kind = _LastingTask if getattr(work, "cr_code", None) in lasting else asyncio.Task
        return kind(work, loop=loop, **options)

    asyncio.get_running_loop().set_task_factory(new_task)
