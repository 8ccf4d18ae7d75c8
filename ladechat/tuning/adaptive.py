"""The adaptive policy: as many drafts, the likeliest first, as bring the most tokens per second here."""

import heapq
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, Outcome, Proposal
from ladechat.decoder.policy import NOT_TAKEN, Choice, add_whole
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.rates import AcceptanceRates

MAX_DRAFTS = 63
"""The most drafted tokens in a pass: with the last token, 64 slots."""
LEAST_CHANCE = 0.001
"""A draft less likely than this is worth no slot on any device."""
UNPAID_STEPS = 8
"""After this many steps in which drafting was not expected to pay, it pauses: for 1 step, then for 3, 7 …"""
LONGEST_PAUSE = 31
HOST_MEMORY = 50
"""The time that a step takes besides its pass is a mean of about this many steps."""
SHOWN_MEMORY = 30
"""What is shown is a mean over about this many steps."""


class Costs(Protocol):
    """What passes cost: see `ladechat.tuning.costs.PassCosts`."""

    def curve(self, most: int) -> NDArray[np.float64]:
        """(most,) the seconds of a pass of 1, 2 … `most` slots."""
        ...

    def observe(self, slots: int, seconds: float) -> None:
        """Take in a pass that was timed."""
        ...


class Expectation(NamedTuple):
    """What the latest choices were made of.

    Attributes:
        slots: of the chosen passes, a mean.
        tokens: expected of them, a mean.
        by_slots: (`MAX_DRAFTS` + 1,) tokens expected of the best pass of 1, 2 … slots, means.
    """

    slots: float
    tokens: float
    by_slots: NDArray[np.float64]


class AdaptivePolicy:
    """Best-first choice among all proposals.

    A node's chance is the product of the acceptance rates on its path. Taken by falling chance, n nodes are expected to
    yield 1 + Σ chances tokens from a pass of n + 1 slots: that n is taken for which tokens ÷ seconds are most.
    Where even that is less than a plain step yields, drafting pauses for longer and longer (exponential backoff).

    Args:
        costs: seconds of passes, by slots.
    """

    def __init__(self, costs: Costs) -> None:
        self.rates = AcceptanceRates()
        self.expectation = Expectation(1.0, 1.0, np.ones(MAX_DRAFTS + 1))
        self._costs = costs
        self._drafting = True
        self._unpaid = self._pause = self._paused = 0
        self._host_seconds = {True: 0.0, False: 0.0}
        """Seconds of a step outside its forward pass, by whether it drafted; means of `_host_steps` steps."""
        self._host_steps = {True: 0, False: 0}
        self._began = 0.0

    def drafting(self) -> bool:
        """False for a while where drafting does not pay."""
        self._began = time.perf_counter()
        self._drafting = not self._paused
        if self._paused:
            self._paused -= 1
        return self._drafting

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> Choice:
        """The tree that is expected to yield the most tokens per second; whole proposals are in it in any case."""
        tree = SlotTree(last_token)
        slots = [add_whole(tree, one) if one.whole else [NOT_TAKEN] * len(one.nodes) for one in proposals]
        least = len(tree)
        chances = self._grow(tree, proposals, slots)
        tree.truncate(least + self._best_size(least, chances))
        return Choice(tree, [[slot if slot < len(tree) else NOT_TAKEN for slot in own] for own in slots])

    def observe(self, outcome: Outcome, proposals: Sequence[Proposal]) -> None:
        """Learn what the step cost and what proposals were worth."""
        self._costs.observe(len(outcome.tree), outcome.forward_seconds)
        for proposal in proposals:
            self.rates.observe(proposal.nodes, outcome.tokens)
        # A machine that pauses once has not become slow.
        host = min(time.perf_counter() - self._began - outcome.forward_seconds, outcome.forward_seconds)
        kind = self._drafting
        self._host_steps[kind] = min(self._host_steps[kind] + 1, HOST_MEMORY)
        self._host_seconds[kind] += (host - self._host_seconds[kind]) / self._host_steps[kind]

    def _best_size(self, least: int, chances: Sequence[float]) -> int:
        """How many of the drafts to take, by falling chance, beside `least` slots that are in the pass in any case."""
        expected = np.cumsum([1.0, *chances])
        curve = self._costs.curve(least + len(chances))
        extra = max(0.0, self._host_seconds[True] - self._host_seconds[False])
        rates = expected / (curve[least - 1 :] + extra)
        best = int(np.argmax(rates))
        if self._drafting:
            self._show(best, expected)
            # The window moves on with every pass, so it is never paused.
            self._count(pays=bool(rates[best] > 1 / curve[0]) or least > 1)
        return best

    def _count(self, pays: bool) -> None:
        """Begin a pause where drafting has not been expected to pay for a while; each is about twice as long."""
        if pays:
            self._unpaid = self._pause = 0
            return
        self._unpaid += 1
        if self._unpaid >= UNPAID_STEPS:
            self._paused = self._pause = min(2 * self._pause + 1, LONGEST_PAUSE)

    def _grow(self, tree: SlotTree, proposals: Sequence[Proposal], slots: Sequence[list[int]]) -> list[float]:
        """Add up to `MAX_DRAFTS` nodes to the tree, the likeliest first.

        Fills in `slots`. A node whose token stands there already shares that slot.

        Returns:
            The chance of each slot that was added, falling.
        """
        children = [_children(proposal) for proposal in proposals]
        waiting: list[tuple[float, int, int]] = []  # −chance, proposal, node

        def wait_for(index: int, parent: int, chance: float) -> None:
            for node in children[index].get(parent, ()):
                heapq.heappush(waiting, (-chance * self.rates(proposals[index].nodes[node]), index, node))

        for index in range(len(proposals)):
            wait_for(index, ROOT, 1.0)
        chances: list[float] = []
        while waiting and len(chances) < MAX_DRAFTS and -waiting[0][0] >= LEAST_CHANCE:
            negative, index, node = heapq.heappop(waiting)
            parent, token, source, *_ = proposals[index].nodes[node]
            before = len(tree)
            slots[index][node] = tree.add(0 if parent == ROOT else slots[index][parent], token, source)
            if len(tree) > before:
                chances.append(-negative)
            wait_for(index, node, -negative)
        return chances

    def _show(self, best: int, expected: NDArray[np.float64]) -> None:
        shown, part = self.expectation, 1 / SHOWN_MEMORY
        by_slots = np.full(len(shown.by_slots), expected[-1])
        by_slots[: len(expected)] = expected
        self.expectation = Expectation(
            shown.slots + (best + 1 - shown.slots) * part,
            shown.tokens + (float(expected[best]) - shown.tokens) * part,
            shown.by_slots + (by_slots - shown.by_slots) * part,
        )


def _children(proposal: Proposal) -> dict[int, list[int]]:
    """The nodes below each node, and below `ROOT`; none of a proposal that is taken as a whole."""
    below: dict[int, list[int]] = {}
    if not proposal.whole:
        for index, node in enumerate(proposal.nodes):
            below.setdefault(node.parent, []).append(index)
    return below
