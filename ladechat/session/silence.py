"""The time since an engine's last event, while one is expected."""

import time
from collections.abc import Callable


class Silence:
    """The time since the engine's last event.

    Args:
        clock: returns seconds, on a monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def end(self) -> None:
        """Restart the clock: the engine has sent an event, or has just received a command."""
        self._last = self._clock()

    def beyond(self, limit: float | None) -> float | None:
        """Return the seconds of silence if they exceed `limit` seconds, else None. None: no limit."""
        seconds = self._clock() - self._last
        return seconds if limit is not None and seconds > limit else None
