"""What goes on after the message in whose handling it began does not hold the screen that handled it.

Each task copies the context in which it is made, and Textual's has whoever handles a message (`active_message_pump`).
A scroll bar of the chat that is made while a race handles a message would hold the race,
and all its answers, for as long as there is a chat.
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
"""Work that goes on. Any other has to know who handles the message: a widget that waits for its own removal would wait
for ever."""


class _LastingTask(asyncio.Task[Any]):
    """One that begins as if the app itself had made it, and so do its callbacks."""

    def __init__(self, work: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._of_app = copy_context()
        if active_app in self._of_app:
            self._of_app.run(active_message_pump.set, self._of_app[active_app])
        super().__init__(work, **{**options, "context": self._of_app})

    def add_done_callback(self, fn: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        super().add_done_callback(fn, context=self._of_app if context is None else context)


def let_lasting_work_hold_the_app_alone(*own: Work) -> None:
    """From now on, tasks of this event loop that do lasting work begin as if the app itself had made them.

    Args:
        own: lasting work besides Textual's own.
    """
    lasting = {cast(FunctionType, work).__code__ for work in (*TEXTUALS, *own)}

    def new_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        kind = _LastingTask if getattr(work, "cr_code", None) in lasting else asyncio.Task
        return kind(work, loop=loop, **options)

    asyncio.get_running_loop().set_task_factory(new_task)
