"""Decides when the next step is due: at once, at so many steps a second, or when the user asks for it."""

import time
from collections.abc import Callable

from ladechat import protocol


class StepPace:
    """The pace of steps, which stays the same from answer to answer. The clock is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps_per_second: float | None = None
        self._asked_for = 0
        self._begun_at = float("-inf")

    def change(self, command: protocol.Pace) -> None:
        """Change the pace. A request for a single step adds to those not taken yet; any other pace drops them."""
        self._steps_per_second = command.steps_per_second
        self._asked_for = self._asked_for + 1 if command.step else 0

    def begin_answer(self) -> None:
        """Make the first step due at once, and drop requests for single steps: they were for the answer before."""
        self._asked_for, self._begun_at = 0, float("-inf")

    def seconds_left(self) -> float | None:
        """Return the seconds until the next step is due, 0 if it is; None while only a command can make it due."""
        if self._asked_for or self._steps_per_second is None:
            return 0.0
        if not self._steps_per_second:
            return None
        return max(0.0, self._begun_at + 1 / self._steps_per_second - self._clock())

    def begin_step(self) -> None:
        """Note that the next step begins now."""
        self._asked_for = max(0, self._asked_for - 1)
        self._begun_at = self._clock()
