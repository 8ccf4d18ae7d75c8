"""What steps take, on average and of late."""

import math
from collections.abc import Callable, Sequence

REMEMBERED = 60
"""Of how many times the mean is taken."""

SETTLING = 6
"""So many plain passes may be slower behind something else."""

SLIGHT, LONG = 0.1, 4.0
"""What takes less of a plain pass loses nothing worth mention; of more of them one behind the other it is not known how
much of it each has lost."""

ASSUMED = 5
"""What is assumed to be lost counts as much as what was seen in the time of so many plain passes, and less and less."""

MOST_LOST = 2.0
"""More is not believed."""


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
    """What everything that is no plain decoding costs the plain steps behind it.

    They read all weights anew, and meanwhile the processor's cache has lost some of them, to others who share it: the
    more, the longer it took.

    Args:
        assumed: what `lost` is if nothing was seen; None where nothing is lost.
    """

    def __init__(self, assumed: Callable[[], float | None]) -> None:
        self._assumed = assumed
        self.settled = Mean(REMEMBERED)
        """The seconds of plain passes behind plain ones."""
        self._longer, self._away = Mean(REMEMBERED), Mean(REMEMBERED)
        self._unsettled, self._since_settled = SETTLING, 0
        self._disturbed = 0.0
        self._was_settled = False

    @property
    def lost(self) -> float:
        """The seconds that plain passes lose for each one of something else before them."""
        assumed, seen = self._assumed(), self._away.weight
        if not seen or assumed is None:
            return assumed or 0.0
        weight = ASSUMED * self.settled.value * (1 - seen / REMEMBERED)
        lost = (self._longer.value * seen + assumed * weight) / (self._away.value * seen + weight)
        return min(max(0.0, lost), MOST_LOST)

    def begin(self) -> None:
        """Something else was done, nobody knows for how long."""
        self._unsettled, self._disturbed, self._was_settled = SETTLING, 0.0, False

    def disturb(self, seconds: float) -> None:
        """For so long something else was done than a plain step would have been."""
        self._disturbed += seconds

    def add(self, passes: Sequence[float]) -> None:
        """The seconds of the next passes, plain ones."""
        if not passes:
            return
        self._take_in_what_was_done(self.settled.value or passes[0])
        unsettled, settled = passes[: self._unsettled], passes[self._unsettled :]
        self._unsettled -= len(unsettled)
        usual = self.settled.value
        if unsettled and self._was_settled and self._away.weight:
            longer = sum(min(max(seconds - usual, -usual), usual) for seconds in unsettled)
            self._longer.value += longer / self._away.weight
        self._since_settled += len(unsettled)
        if settled:
            most = 2 * usual or math.inf  # a machine that pauses once has not become slow
            self.settled.add(sum(min(seconds, most) for seconds in settled) / len(settled), len(settled))
            self._since_settled, self._was_settled = 0, True
        elif self._since_settled > REMEMBERED:  # what it was says nothing any more
            self.settled, self._was_settled = Mean(REMEMBERED), False

    def _take_in_what_was_done(self, usual: float) -> None:
        seconds, self._disturbed = self._disturbed, 0.0
        if seconds <= SLIGHT * usual:
            return
        self._unsettled = SETTLING
        self._was_settled = self._was_settled and seconds < LONG * usual
        if self._was_settled:
            self._away.add(seconds)
            self._longer.add(0.0)
