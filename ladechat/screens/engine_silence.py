"""An engine that should send something and does not: noticed, and said until it speaks again."""

import asyncio
from collections.abc import Callable

from textual.widget import Widget

from ladechat.session.engine_session import EngineSession
from ladechat.widgets.later import call_later

SECONDS_TO_LISTEN = 1.0
"""Between two looks whether an engine that should send something does."""


class EngineSilence:
    """Looks whether a session's engine is silent for too long, as long as something is expected of it.

    Args:
        screen: what the looks end with.
        session: the engine's.
        warn: shows a sentence until it is called with "".
    """

    def __init__(self, screen: Widget, session: EngineSession, warn: Callable[[str], None]) -> None:
        self._screen = screen
        self._session = session
        self._warn = warn
        self._warned = False
        self._next: asyncio.TimerHandle | None = None

    def look_later(self) -> None:
        """Look in a while, unless that is due already or nothing is expected."""
        if self._next is None and self._session.most_silence is not None:
            self._next = call_later(self._screen, SECONDS_TO_LISTEN, self.look)

    def look(self) -> None:
        """Say so when the engine should have sent something, and has not for long; and look again later."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        seconds = self._session.stuck_for()
        if seconds is not None:
            self._warn(f"no word from the engine for {seconds:.0f} s · F5 starts it again")
        elif self._warned:
            self._warn("")
        self._warned = seconds is not None
        self.look_later()
