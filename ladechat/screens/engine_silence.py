"""Notices an engine that is silent when it should send something, and warns until it sends an event again."""

import asyncio
from collections.abc import Callable

from textual.widget import Widget

from ladechat.session.session import Session
from ladechat.widgets.later import call_later

SECONDS_TO_LISTEN = 1.0
"""The seconds between two checks of an engine that should send something."""


class EngineSilence:
    """Checks whether a session's engine is silent for too long, while an event is expected of it, until the screen is
    removed. `warn` shows a warning, and hides it when called with "".
    """

    def __init__(self, screen: Widget, session: Session, warn: Callable[[str], None]) -> None:
        self._screen, self._session, self._warn = screen, session, warn
        self._warned = False
        self._next: asyncio.TimerHandle | None = None

    def look_later(self) -> None:
        """Schedule a check, unless there is one already or no event is expected."""
        if self._next is None and self._session.most_silence is not None:
            self._next = call_later(self._screen, SECONDS_TO_LISTEN, self.look)

    def look(self) -> None:
        """Warn if the engine should have sent something and is silent for too long, or if its command says something
        else; then schedule the next check.
        """
        if self._next is not None:
            self._next.cancel()
            self._next = None
        seconds, words = self._session.stuck_for(), self._session.first_words
        if seconds is not None:
            self._warn(f"no word from the engine for {seconds:.0f} s · F5 starts it again")
        elif words:
            self._warn(f"waiting for the engine, which says: {words}")
        elif self._warned:
            self._warn("")
        self._warned = seconds is not None or bool(words)
        self.look_later()
