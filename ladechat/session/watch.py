"""Tells when an engine has been silent for longer than one should wait without a word."""

import time
from collections.abc import Callable


class Watch:
    """How long an engine has said nothing, while something is due from it.

    Args:
        clock: seconds, on a clock that does not go back.

    Attributes:
        patience: seconds of silence that mean nothing; None while nothing is due.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.patience: float | None = None
        self._clock = clock
        self._heard_at = clock()

    def heard(self) -> None:
        """The engine has said something, or has just been told to."""
        self._heard_at = self._clock()

    def silence(self) -> float | None:
        """Seconds since the last word, if that is longer than patience lasts."""
        silent = self._clock() - self._heard_at
        return silent if self.patience is not None and silent > self.patience else None
