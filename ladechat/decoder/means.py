"""What steps take, on average and of late."""

import math
from collections.abc import Sequence

REMEMBERED = 60
"""Of how many times the mean is taken."""

SETTLING = 6
"""So many plain passes may be slower behind one that was not."""


class Mean:
    """A mean that forgets: a value counts as if at most `memory` had been seen."""

    __slots__ = ("_memory", "value", "weight")

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self.value = self.weight = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Take a value in."""
        self.weight = min(self.weight + weight, self._memory)
        self.value += (value - self.value) * min(1.0, weight / self.weight)


class Aftermath:
    """What a step that verified guesses costs the plain steps behind it.

    They read all weights anew, and what a processor's cache has lost of them meanwhile takes them longer: more of it,
    the longer the step before took.
    """

    def __init__(self) -> None:
        self.settled = Mean(REMEMBERED)
        """The seconds of plain passes behind plain ones."""
        self.extra = Mean(REMEMBERED)
        """By how many seconds all plain passes right behind one with guesses are longer."""
        self._plain_in_a_row = 0
        self._longer = 0.0

    def disturb(self) -> None:
        """The next pass is none of plain decoding."""
        if self._plain_in_a_row < SETTLING and self.settled.weight:  # else it was added when they had settled
            self.extra.add(self._longer)
        self._plain_in_a_row, self._longer = 0, 0.0

    def add(self, passes: Sequence[float]) -> None:
        """The seconds of the next passes, plain ones."""
        unsettled = passes[: max(0, SETTLING - self._plain_in_a_row)]
        settled = passes[len(unsettled) :]
        if unsettled and self.settled.weight:
            usual = self.settled.value
            self._longer += sum(min(max(seconds - usual, -usual), usual) for seconds in unsettled)
            if self._plain_in_a_row + len(unsettled) == SETTLING:
                self.extra.add(self._longer)
                self._longer = 0.0
        self._plain_in_a_row += len(passes)
        if settled:
            most = 2 * self.settled.value or math.inf  # a machine that pauses once has not become slow
            self.settled.add(sum(min(seconds, most) for seconds in settled) / len(settled), len(settled))
