"""Whether hidden states are worth their price: which slots of a pass should carry what the next drafts are made of."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MEMORY = 50
"""Savings and prices are means of about so many passes."""
MOST_OFF = 4.0
"""A machine that pauses once has not become slow: a pass with hidden states counts as at most this many times what is
known of it so far."""
TRIAL = 4
"""So many passes in a row have hidden states without a promise, to see what they bring …"""
FIRST_PAUSE, LONGEST_PAUSE = 64, 2048
"""… and if that is too little, so many have none before they are tried again; each time twice as many."""
LIKELY = 0.2
"""In a trial, slots carry rows that are the last accepted one with at least this chance."""


class HiddenWorth:
    """Weighs what drafts made of hidden states save against what they cost in the pass before.

    Hidden transfer hangs rows of its own on slots of a pass, which make it dearer, so that the *next* pass has drafts.
    They are of use if the slot turns out to be the last accepted one, its leaf. So a slot is worth its rows if

        chance to be the leaf · seconds that such drafts save a pass  >  seconds of its rows
    """

    def __init__(self) -> None:
        self._saved, self._rows, self._rest = _Mean(), _Mean(), 0.0
        self._trial, self._pause, self._waiting = TRIAL, FIRST_PAUSE, 0

    @property
    def row_seconds(self) -> float:
        """What a pass takes longer for the rows of one slot. Never less than nothing, also where passes have become
        faster than was expected of those without rows.
        """
        return max(0.0, self._rows.value)

    def carriers(self, leaf: NDArray[np.float64]) -> list[int]:
        """The slots that should carry rows in the next pass.

        Args:
            leaf: (T,) for each of its slots the chance that it will be the last accepted one.
        """
        if self._waiting:
            self._waiting -= 1
            return []
        gain = leaf * self._saved.value - self.row_seconds
        paying: list[int] = np.flatnonzero(gain > 0).tolist()
        if float(gain[paying].sum()) > self._rest:
            self._trial, self._pause = TRIAL, FIRST_PAUSE
            return paying
        if self._trial:
            self._trial -= 1
            likely: list[int] = np.flatnonzero(leaf >= LIKELY).tolist()
            return likely
        self._trial, self._waiting = TRIAL, self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return []

    def saves(self, seconds: float) -> None:
        """A pass that had such drafts was expected to save so many seconds, against the best without them."""
        self._saved.add(seconds)

    def cost(self, carriers: Sequence[int], seconds: float, expected: float, rest: float) -> None:
        """A pass with hidden states was timed.

        Args:
            carriers: the slots that carried rows.
            seconds: that it took.
            expected: that it would have taken without them.
            rest: seconds that a step spends more on making drafts of them.
        """
        known = expected + self.row_seconds * len(carriers)
        self._rows.add((min(seconds, MOST_OFF * known) - expected) / len(carriers))
        self._rest = rest


class _Mean:
    """A mean of about the last `MEMORY` values; 0 before there are any."""

    def __init__(self) -> None:
        self.value, self._count = 0.0, 0

    def add(self, value: float) -> None:
        self._count = min(self._count + 1, MEMORY)
        self.value += (value - self.value) / self._count


def leaf_chances(parents: Sequence[int], reached: Sequence[float]) -> NDArray[np.float64]:
    """(T,) the chance of each slot to be the last accepted one: that it is accepted, and none of its children.

    Args:
        parents: (T,) see `ladechat.decoder.verify_mask.SlotTree`.
        reached: (T,) the chance of each slot to be accepted.
    """
    leaf: NDArray[np.float64] = np.array(reached)
    np.subtract.at(leaf, list(parents[1:]), leaf[1:].copy())
    return leaf.clip(min=0.0)
