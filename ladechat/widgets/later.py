"""A call after a while that always comes, be the program ever so late."""

import asyncio
from collections.abc import Callable

from textual.widget import Widget


def call_later(widget: Widget, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
    """Call `callback` among the widget's messages in so many seconds; `cancel` what is returned to call it off.

    `Widget.set_timer` skips a tick that it is late for, even its only one: where the machine paused for longer than
    `seconds` while that timer started, a panel would wait forever.
    """
    return asyncio.get_running_loop().call_later(seconds, widget.call_next, callback)
