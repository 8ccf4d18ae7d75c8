"""Prevents long-running tasks from keeping closed screens in memory.

Each task copies the context in which it is created. Textual's context holds the message pump that is handling a message
(`active_message_pump`). For example, a scroll bar of the chat created while a race handles a message would keep the
race, with all its answers, in memory for as long as the chat exists.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from types import FunctionType
from typing import Any, cast

from textual._context import active_app, active_message_pump
from textual.message_pump import MessagePump
from textual.timer import Timer
from textual.worker import Worker

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


def let_lasting_work_hold_the_app_alone(*own: Work) -> None:
    """Make tasks of this event loop that run long-running coroutines hold only the app in their context.

    Args:
        own: coroutine functions in addition to Textual's.
    """
    lasting = {cast(FunctionType, work).__code__ for work in (*TEXTUALS, *own)}

    def new_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        kind = _LastingTask if getattr(work, "cr_code", None) in lasting else asyncio.Task
        return kind(work, loop=loop, **options)

    asyncio.get_running_loop().set_task_factory(new_task)
