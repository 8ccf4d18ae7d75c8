"""How long an engine has been silent, when it should have said something."""

import time
from collections.abc import Callable


class Silence:
    """The time since the engine's last event.

    Args:
        clock: seconds, on a clock that does not go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def end(self) -> None:
        """The engine has sent an event, or has just been given something to do."""
        self._last = self._clock()

    def beyond(self, limit: float | None) -> float | None:
        """Seconds of silence if they exceed `limit` seconds, else None. Without a limit nothing is expected."""
        seconds = self._clock() - self._last
        return seconds if limit is not None and seconds > limit else None
