"""The choice of slots that carry pseudo rows, and whether the drafts made from them are worth their cost."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ladechat.tuning.backoff import Backoff
from ladechat.tuning.running_mean import RunningMean

MEMORY = 50
"""Savings and costs are means over about so many passes."""
MOST_OFF = 4.0
"""A single stall does not mean that the machine is slow: a pass with hidden states counts as at most this many times
its time so far."""
TRIAL, FIRST_PAUSE, LONGEST_PAUSE = 4, 64, 2048
"""The passes of a trial, which have hidden states though no gain is expected, and the passes without any between two
trials, from first to longest."""
LIKELY = 0.2
"""In a trial, those slots carry rows that are the last accepted one with at least this chance."""


class HiddenRows:
    """Weighs the time that drafts made from hidden states save against their cost in the pass before.

    Hidden transfer adds pseudo rows to slots of a pass, which make it slower, so that the *next* pass has drafts. They
    are useful if the slot turns out to be the last accepted one, the leaf. So a slot is worth its rows if

        chance to be the leaf · seconds that such drafts save a pass  >  seconds of its rows
    """

    def __init__(self) -> None:
        self._saved, self._row = RunningMean(MEMORY, 0.0), RunningMean(MEMORY, 0.0)
        self._backoff = Backoff(TRIAL, FIRST_PAUSE, LONGEST_PAUSE)

    @property
    def row_seconds(self) -> float:
        """The additional seconds of a pass for the rows of one slot; at least 0, even where passes have become faster
        than expected without rows.
        """
        return max(0.0, self._row.value)

    def paying(self, leaf: NDArray[np.float64], overhead: float) -> list[int]:
        """Return the slots that are worth their rows; none if together they do not cover the overhead, or in a pause.

        Args:
            leaf: (T,) for each slot of the next pass the chance that it will be the last accepted one.
            overhead: additional seconds that a step spends on making drafts from hidden states.
        """
        gain = leaf * self._saved.value - self.row_seconds
        slots: list[int] = np.flatnonzero(gain > 0).tolist()
        return slots if not self._backoff.paused and float(gain[slots].sum()) > overhead else []

    def tried(self, leaf: NDArray[np.float64]) -> list[int]:
        """Return the slots that should carry rows as a trial; none in a pause between trials."""
        likely: list[int] = np.flatnonzero(leaf >= LIKELY).tolist()
        return [] if self._backoff.paused else likely

    def observe_choice(self, pays: bool) -> None:
        """Record whether the slots of a pass were worth their rows: after some that were not, a pause begins."""
        if self._backoff.paused:
            self._backoff.wait()
        elif pays:
            self._backoff.succeed()
        else:
            self._backoff.fail(TRIAL)

    def observe_saving(self, seconds: float) -> None:
        """Learn the seconds that a pass with such drafts was expected to save, against the best pass without them."""
        self._saved.add(seconds)

    def observe_pass(self, carriers: Sequence[int], seconds: float, expected: float) -> None:
        """Learn the cost of rows.

        Args:
            carriers: the slots that carried rows, at least one.
            seconds: the duration of the pass.
            expected: its expected duration without them.
        """
        known = expected + self.row_seconds * len(carriers)
        self._row.add((min(seconds, MOST_OFF * known) - expected) / len(carriers))


def leaf_chances(parents: Sequence[int], reached: Sequence[float]) -> NDArray[np.float64]:
    """Return the (T,) chances of the slots to be the last accepted one: accepted, while none of their children is.

    Args:
        parents: (T,) each slot's parent, see `ladechat.decoder.verify_mask.SlotTree`.
        reached: (T,) the chance of each slot to be accepted.
    """
    leaf: NDArray[np.float64] = np.array(reached)
    np.subtract.at(leaf, list(parents[1:]), leaf[1:].copy())
    return leaf.clip(min=0.0)
