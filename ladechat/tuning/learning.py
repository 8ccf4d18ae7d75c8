"""Learning from step to step: means, acceptance rates, pauses of what does not pay, and the worth of pseudo rows."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, Node

RATE_MEMORY = 200.0  # a text changes: a rate is a mean over about so many drafts
ASSUMED = 8.0  # the weight of a drafter's own assumption, in drafts
ROW_MEMORY = 50  # savings and costs of pseudo rows are means over about so many passes
MOST_OFF = 4.0  # a single stall is no slow machine: a pass with rows counts as at most this many times its time so far
TRIAL = 4  # passes with rows that are not expected to pay, between two pauses
FIRST_PAUSE, LONGEST_PAUSE = 64, 2048  # passes without rows
LIKELY = 0.2  # in a trial, those slots carry rows that are the last accepted one with at least this chance


class RunningMean:
    """The mean of about the latest `memory` values, numbers or arrays; the first `value` counts as `weight` of them."""

    def __init__(self, memory: float, value: Any, weight: float = 0.0) -> None:
        self.value, self.weight, self._memory = value, weight, memory

    def add(self, value: Any) -> None:
        """Add a value."""
        self.weight = min(self.weight + 1, self._memory)
        self.value = self.value + (value - self.value) / self.weight


class AcceptanceRates:
    """For each kind of node, the share that was right where its parent was; it need not be in the pass to be judged."""

    def __init__(self) -> None:
        self.by_kind: dict[Hashable, RunningMean] = {}

    def __call__(self, node: Node) -> float:
        """Return the chance that a node is right if its parent is, 0 to 1."""
        rate = self.by_kind.get(node.kind)
        return node.chance if rate is None else float(rate.value)

    def observe(self, nodes: Sequence[Node], tokens: Sequence[int]) -> None:
        """Judge the nodes of a proposal by the tokens that a step emitted: of the nodes ``cat → sat → on`` and ``dog``,
        with ``cat ran``, cat is right, sat and dog are wrong, and on is not judged.
        """
        depths = {ROOT: 0}  # of right nodes
        for index, node in enumerate(nodes):
            before = depths.get(node.parent, len(tokens))
            if before < len(tokens):
                right = tokens[before] == node.token
                if right:
                    depths[index] = before + 1
                if node.kind not in self.by_kind:
                    self.by_kind[node.kind] = RunningMean(RATE_MEMORY, node.chance, ASSUMED)
                self.by_kind[node.kind].add(float(right))


class Backoff:
    """Pauses after `trials` failures in a row: for `first` steps, then for 2n + 1 instead of n, up to `longest`."""

    def __init__(self, trials: int, first: int, longest: int) -> None:
        self.left = trials  # failures until the next pause
        self.pause = 0  # steps that are left of the present one
        self._next, self._begin, self._longest = first, (trials, first), longest

    def observe(self, paid: bool, trials: int) -> None:
        """Count a step. If it begins a pause, `trials` failures after that one begin the next; a success resets all."""
        if self.pause:
            self.pause -= 1
        elif paid:
            self.left, self._next = self._begin
        elif self.left > 1:
            self.left -= 1
        else:
            self.left, self.pause, self._next = trials, self._next, min(2 * self._next + 1, self._longest)


class HiddenRows:
    """Weighs the time that drafts made from hidden states save against their cost in the pass before.

    Hidden transfer adds pseudo rows to slots of a pass, which make it slower, so that the *next* pass has drafts. They
    are useful if the slot turns out to be the last accepted one, the leaf. So a slot is worth its rows if

        chance to be the leaf · seconds that such drafts save a pass  >  seconds of its rows
    """

    def __init__(self) -> None:
        self.saved = RunningMean(ROW_MEMORY, 0.0)  # expected seconds, against the best pass without such drafts
        self._row = RunningMean(ROW_MEMORY, 0.0)
        self.backoff = Backoff(TRIAL, FIRST_PAUSE, LONGEST_PAUSE)

    @property
    def row_seconds(self) -> float:
        """The seconds that the rows of one slot add; at least 0, even where passes are faster than expected."""
        return max(0.0, float(self._row.value))

    def choose(self, leaf: NDArray[np.float64], overhead: float) -> tuple[list[int], bool]:
        """Return the slots to carry rows, by their chances to be the `leaf`, and whether they cover the `overhead`."""
        if self.backoff.pause:
            return [], False
        gain = leaf * self.saved.value - self.row_seconds
        pays = float(gain[gain > 0].sum()) > overhead
        return np.flatnonzero(gain > 0 if pays else leaf >= LIKELY).tolist(), pays

    def observe(self, carriers: Sequence[int], seconds: float, expected: float) -> None:
        """Learn the cost of rows from a pass that took `seconds`, and without its rows `expected` ones."""
        known = expected + self.row_seconds * len(carriers)
        self._row.add((min(seconds, MOST_OFF * known) - expected) / len(carriers))


def leaf_chances(parents: Sequence[int], reached: Sequence[float]) -> NDArray[np.float64]:
    """Return the (T,) chances of slots to be the last accepted one, by their parents and chances to be accepted."""
    leaf: NDArray[np.float64] = np.array(reached)
    np.subtract.at(leaf, list(parents[1:]), leaf[1:].copy())
    return leaf.clip(min=0.0)
