"""The messages of the app: shown on the current screen for some seconds, until they were seen."""

import asyncio
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from time import monotonic

from textual.app import App
from textual.events import Event, Key
from textual.notifications import SeverityLevel
from textual.reactive import reactive

from ladechat.own_keys import Keymap, with_own_keys
from ladechat.widgets.bars.message_line import ShownMessage
from ladechat.widgets.flow import safe
from ladechat.widgets.later import call_later

SECONDS_TO_READ: Mapping[SeverityLevel, float] = {"information": 5.0, "warning": 8.0, "error": 20.0}
"""The seconds that a message is shown, unless a key, a click or another screen dismisses it."""
SECONDS_BEFORE_KEYS = 1.0
"""Key presses do not dismiss a message in its first second, in case it was not seen."""
REMEMBERED = 100
"""The number of messages that can be read again."""


class AppWithMessages(App[int], inherit_bindings=False):
    """An app that shows messages, in a `MessageLine`."""

    said: reactive[tuple[ShownMessage, ...]] = reactive(())
    """The messages that are shown now."""

    def __init__(self) -> None:
        super().__init__()
        self.keymap: Keymap = {}
        """The user's keys, by the ids of ours."""
        self.messages: deque[tuple[datetime, ShownMessage]] = deque(maxlen=REMEMBERED)
        """The last messages, each with its time."""
        self._said_at = self._said_until = 0.0
        self._key_since = False
        self.said_at_key: tuple[ShownMessage, ...] = ()
        """The messages that were shown when the last key was pressed."""
        self._forgetting: asyncio.TimerHandle | None = None

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message for some seconds. It replaces messages shown before the last key press; later ones stay above
        it.

        Control characters in names of files and errors have no effect.
        """
        if self._key_since:
            self.clear_notifications()
        now, new = monotonic(), ShownMessage(safe(with_own_keys(message, self)), severity)
        self.messages.append((datetime.now(), new))
        self.said = (*(old for old in self.said if old != new), new)
        self._key_since, self._said_at = False, now
        self._said_until = max(self._said_until, now + (SECONDS_TO_READ[severity] if timeout is None else timeout))
        self._forget_after(self._said_until - now)

    def clear_notifications(self) -> None:
        self.said, self._said_until = (), 0.0
        self._forget_after(None)

    def _forget_after(self, seconds: float | None) -> None:
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = None if seconds is None else call_later(self, seconds, self.clear_notifications)

    async def on_event(self, event: Event) -> None:
        """Dismiss messages at a key press, then handle the key."""
        if isinstance(event, Key) and not event.is_forwarded:
            self._key_since, self.said_at_key = True, self.said
            if monotonic() - self._said_at >= SECONDS_BEFORE_KEYS:
                self.clear_notifications()
        await super().on_event(event)
