"""When the next step of an answer is due: at once, at so many steps a second, or when somebody asks for it."""

import time
from collections.abc import Callable

from ladechat import protocol


class Pace:
    """The pace of steps, which holds from answer to answer.

    Args:
        clock: seconds, on a clock that does not go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps_per_second: float | None = None
        self._asked_for = 0
        self._begun_at = float("-inf")

    def change(self, command: protocol.Pace) -> None:
        """Take over another pace. Steps that were asked for one by one are kept while more of them are."""
        self._steps_per_second = command.steps_per_second
        self._asked_for = self._asked_for + 1 if command.step else 0

    def begin_answer(self) -> None:
        """The first step waits for no time; those that were asked for one by one were of the answer before."""
        self._asked_for, self._begun_at = 0, float("-inf")

    def seconds_left(self) -> float | None:
        """Until the next step is due, 0 if it is; None while only a command can make it due."""
        if self._asked_for or self._steps_per_second is None:
            return 0.0
        if not self._steps_per_second:
            return None
        return max(0.0, self._begun_at + 1 / self._steps_per_second - self._clock())

    def begin_step(self) -> None:
        """The next step begins now."""
        self._asked_for = max(0, self._asked_for - 1)
        self._begun_at = self._clock()
