"""Whether the hidden states that drafts are made of are worth their price, and which slots should carry them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ladechat.tuning.backoff import Backoff
from ladechat.tuning.running_mean import RunningMean

MEMORY = 50
"""Savings and prices are means of about so many passes."""
MOST_OFF = 4.0
"""A machine that pauses once has not become slow: a pass with hidden states counts as at most this many times what is
known of it so far."""
TRIAL, FIRST_PAUSE, LONGEST_PAUSE = 4, 64, 2048
"""Passes in a row that have hidden states without a promise, and between such trials, passes that have none."""
LIKELY = 0.2
"""In a trial, slots carry rows that are the last accepted one with at least this chance."""


class HiddenRows:
    """Weighs what drafts made of hidden states save against what they cost in the pass before.

    Hidden transfer hangs rows of its own on slots of a pass, which make it dearer, so that the *next* pass has drafts.
    They are of use if the slot turns out to be the last accepted one, its leaf. So a slot is worth its rows if

        chance to be the leaf · seconds that such drafts save a pass  >  seconds of its rows
    """

    def __init__(self) -> None:
        self._saved, self._row = RunningMean(MEMORY, 0.0), RunningMean(MEMORY, 0.0)
        self._backoff = Backoff(TRIAL, FIRST_PAUSE, LONGEST_PAUSE)

    @property
    def row_seconds(self) -> float:
        """What a pass takes longer for the rows of one slot. Never less than nothing, also where passes have become
        faster than was expected of those without rows.
        """
        return max(0.0, self._row.value)

    def paying(self, leaf: NDArray[np.float64], overhead: float) -> list[int]:
        """Return the slots that are worth their rows, if together they pay for the overhead too; else none.

        Args:
            leaf: (T,) for each slot of the next pass the chance that it will be the last accepted one.
            overhead: seconds that a step spends more on making drafts of hidden states.
        """
        gain = leaf * self._saved.value - self.row_seconds
        slots: list[int] = np.flatnonzero(gain > 0).tolist()
        return slots if not self._backoff.paused and float(gain[slots].sum()) > overhead else []

    def tried(self, leaf: NDArray[np.float64]) -> list[int]:
        """Return the slots that should carry rows so that something is learnt; none in a pause between trials."""
        likely: list[int] = np.flatnonzero(leaf >= LIKELY).tolist()
        return [] if self._backoff.paused else likely

    def observe_choice(self, pays: bool) -> None:
        """Learn whether the slots of a pass were worth their rows: after some that were not, a pause begins."""
        if self._backoff.paused:
            self._backoff.wait()
        elif pays:
            self._backoff.succeed()
        else:
            self._backoff.fail(TRIAL)

    def observe_saving(self, seconds: float) -> None:
        """Learn what a pass with such drafts was expected to save, against the best one without them."""
        self._saved.add(seconds)

    def observe_pass(self, carriers: Sequence[int], seconds: float, expected: float) -> None:
        """Learn what rows cost.

        Args:
            carriers: the slots that carried rows, at least one.
            seconds: that the pass took.
            expected: that it would have taken without them.
        """
        known = expected + self.row_seconds * len(carriers)
        self._row.add((min(seconds, MOST_OFF * known) - expected) / len(carriers))


def leaf_chances(parents: Sequence[int], reached: Sequence[float]) -> NDArray[np.float64]:
    """Return (T,) the chance of each slot to be the last accepted one: that it is accepted, and none of its children.

    Args:
        parents: (T,) see `ladechat.decoder.verify_mask.SlotTree`.
        reached: (T,) the chance of each slot to be accepted.
    """
    leaf: NDArray[np.float64] = np.array(reached)
    np.subtract.at(leaf, list(parents[1:]), leaf[1:].copy())
    return leaf.clip(min=0.0)
