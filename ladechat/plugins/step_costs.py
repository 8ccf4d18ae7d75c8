"""The time of an engine's steps by the number of tokens in them, learnt while it runs."""

import numpy as np
from numpy.typing import NDArray

from ladechat.tuning.learning import RunningMean

STEP_MEMORY = 200.0  # the line is fitted to about so many of the latest steps
MOST_OFF = 4.0  # a single stall is no slow machine: a step counts as at most this many times the expected time
ASSUMED_COST = 0.1  # of one more slot, in the mean time of a slot, until steps of different size are known
ASSUMED_WEIGHT = 20.0  # of that assumption, in steps that differ by one slot
LEAST_COST = 0.01  # the least that a slot costs, in the same unit: drafts that are never right are not worth a slot


class StepCosts:
    """A line through the seconds of steps by their slots, the tokens that go through the model together."""

    def __init__(self) -> None:
        self._means = RunningMean(STEP_MEMORY, np.zeros(4))
        """Of slots, seconds, slots², slots · seconds."""

    def observe(self, slots: int, seconds: float) -> None:
        """Learn from a step that decoded and read no prompt."""
        if self._means.weight:
            seconds = min(seconds, MOST_OFF * float(self.of(np.array([slots]))[0]))
        self._means.add(np.array([slots, seconds, slots * slots, slots * seconds]))

    def of(self, slots: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the expected times of steps with so many slots; the unit is seconds once a step was observed."""
        if not self._means.weight:
            return np.asarray(slots[0] + ASSUMED_COST * (slots - slots[0]))
        mean_slots, mean_seconds, squares, products = self._means.value
        each, weight = mean_seconds / mean_slots, ASSUMED_WEIGHT / self._means.weight
        variance, covariance = squares - mean_slots**2, products - mean_slots * mean_seconds
        slope = (covariance + weight * ASSUMED_COST * each) / (variance + weight)
        slope = min(max(LEAST_COST * each, slope), each)  # no step, however small, takes less than no time
        return np.asarray(mean_seconds + slope * (slots - mean_slots))
