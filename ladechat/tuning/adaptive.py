"""The adaptive policy: as many drafts, the likeliest first, as bring the most tokens per second here."""

import heapq
import time
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, Outcome, Proposal
from ladechat.decoder.hidden import Hidden
from ladechat.decoder.policy import NOT_TAKEN, Choice, add_whole
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.decision import UNDRAFTED, Decision, Why
from ladechat.tuning.rates import AcceptanceRates
from ladechat.tuning.worth import HiddenWorth, leaf_chances

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


SHOWN_SLOTS = np.array([1, 2, 4, 8, 16, 32, 64])
"""Pass sizes for which a decision lists expected tokens."""


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
        besides: seconds that a step with drafts takes beyond a pass of its slots, a mean: for pseudo rows, and for the
            drafters.
    """

    slots: float
    tokens: float
    by_slots: NDArray[np.float64]
    besides: float


class AdaptivePolicy:
    """Best-first choice among all proposals.

    A node's chance is the product of the acceptance rates on its path. Taken by falling chance, n nodes are expected to
    yield 1 + Σ chances tokens from a pass of n + 1 slots: that n is taken for which tokens ÷ seconds are most.
    Where even that, with all that drafting takes besides the pass, is less than a plain step yields, drafting pauses
    for longer and longer (exponential backoff).

    Args:
        costs: seconds of passes, by slots.

    Attributes:
        decision: the latest.
        expectation: what the latest choices were made of.
    """

    def __init__(self, costs: Costs) -> None:
        self.rates = AcceptanceRates()
        self.decision = UNDRAFTED
        self.expectation = Expectation(1.0, 1.0, np.ones(MAX_DRAFTS + 1), 0.0)
        self._shown = 0
        self._costs = costs
        self._worth = HiddenWorth()
        self._carriers: Sequence[int] = ()
        self._drafting = True
        self._unpaid = self._pause = self._paused = 0
        self._host = _HostSeconds()
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
        self._carriers, self.decision = (), UNDRAFTED
        if not self._drafting:
            return Choice(tree, [[] for _ in proposals], self._carriers)
        slots = [add_whole(tree, one) if one.whole else [NOT_TAKEN] * len(one.nodes) for one in proposals]
        least = len(tree)
        grown = self._grow(tree, proposals, slots)
        best = self._best(least, grown.chances)
        tree.truncate(least + best.drafts)
        from_hidden = [one for one in proposals if one.from_hidden]
        if any(one.nodes for one in from_hidden):
            self._worth.saves(best.tokens / self._best(least, grown.without_hidden).rate - best.seconds)
        if from_hidden:
            reached = [1.0, *[0.0] * (least - 1), *grown.chances[: best.drafts]]
            self._carriers = self._worth.carriers(leaf_chances(tree.parents, reached))
        self._decide(least, best)
        taken = [[slot if slot < len(tree) else NOT_TAKEN for slot in own] for own in slots]
        return Choice(tree, taken, self._carriers)

    def _decide(self, least: int, best: "_Best") -> None:
        """Say what was decided, and pause if that has not paid for a while."""
        slots, by_slots = least + best.drafts, _by_slots(least, best.expected)
        why = _why(least, best, self._cost(slots))
        # The window moves on with every pass, so it is never paused.
        self._count(pays=why is Why.PAYS or least > 1)
        if self._paused:
            self._carriers = ()  # nobody would use what the slots carry
        self.decision = Decision(why, best.tokens, self._cost(slots), by_slots[SHOWN_SLOTS - 1].tolist())
        self._show(slots, best.tokens, by_slots)

    def observe(self, outcome: Outcome, proposals: Sequence[Proposal]) -> None:
        """Learn what the step cost and what proposals were worth."""
        slots, seconds = len(outcome.tree), outcome.forward_seconds
        for proposal in proposals:
            self.rates.observe(proposal.nodes, outcome.tokens)
        self._carriers = _given(self._carriers, outcome.hidden)
        # A machine that pauses once has not become slow.
        host = min(time.perf_counter() - self._began - seconds, seconds)
        self._host.add(self._kind, host)
        if self._carriers:
            without = float(self._costs.curve(slots)[-1])
            self._worth.cost(self._carriers, seconds, without, self._host.beyond(_Kind.WITH_HIDDEN, _Kind.DRAFTING))
        else:
            self._costs.observe(slots, seconds)
        if self._drafting:
            self._show_besides(self._besides())

    @property
    def _kind(self) -> "_Kind":
        return _Kind.WITH_HIDDEN if self._carriers else _Kind.DRAFTING if self._drafting else _Kind.PLAIN

    def _cost(self, slots: int) -> float:
        """Of the step, in plain passes: of a pass of so many slots, and what is done besides."""
        return (float(self._costs.curve(slots)[-1]) + self._besides()) / float(self._costs.curve(1)[0])

    def _besides(self) -> float:
        """Seconds that the step takes beyond a pass of its slots: for pseudo rows, and for the drafters."""
        return self._worth.row_seconds * len(self._carriers) + self._host.beyond(self._kind, _Kind.PLAIN)

    def _best(self, least: int, chances: Sequence[float]) -> "_Best":
        """How many of the drafts to take, by falling chance, beside `least` slots that are in the pass in any case."""
        expected = np.cumsum([1.0, *chances])
        seconds = self._costs.curve(least + len(chances))[least - 1 :]
        seconds = seconds + self._host.beyond(_Kind.DRAFTING, _Kind.PLAIN)
        best = int(np.argmax(expected / seconds))
        return _Best(best, expected, float(seconds[best]))

    def _count(self, pays: bool) -> None:
        """Begin a pause where drafting has not been expected to pay for a while; each is about twice as long."""
        if pays:
            self._unpaid = self._pause = 0
            return
        self._unpaid += 1
        if self._unpaid >= UNPAID_STEPS:
            self._paused = self._pause = min(2 * self._pause + 1, LONGEST_PAUSE)
            # Drafts made of hidden states come a step later than others: after a pause they need a second one.
            self._unpaid = UNPAID_STEPS - (2 if self._carriers else 1)

    def _grow(self, tree: SlotTree, proposals: Sequence[Proposal], slots: Sequence[list[int]]) -> "_Grown":
        """Add up to `MAX_DRAFTS` nodes to the tree, the likeliest first.

        Fills in `slots`. A node whose token stands there already shares that slot.
        """
        children = [_children(proposal) for proposal in proposals]
        waiting: list[tuple[float, int, int]] = []  # −chance, proposal, node

        def wait_for(index: int, parent: int, chance: float) -> None:
            for node in children[index].get(parent, ()):
                heapq.heappush(waiting, (-chance * self.rates(proposals[index].nodes[node]), index, node))

        for index in range(len(proposals)):
            wait_for(index, ROOT, 1.0)
        chances: list[float] = []
        without_hidden: dict[int, float] = {}
        while waiting and len(chances) < MAX_DRAFTS and -waiting[0][0] >= LEAST_CHANCE:
            negative, index, node = heapq.heappop(waiting)
            parent, token, source, *_ = proposals[index].nodes[node]
            before = len(tree)
            slot = slots[index][node] = tree.add(0 if parent == ROOT else slots[index][parent], token, source)
            if len(tree) > before:
                chances.append(-negative)
            if not proposals[index].from_hidden:
                without_hidden.setdefault(slot, -negative)
            wait_for(index, node, -negative)
        return _Grown(chances, list(without_hidden.values()))

    def _show(self, slots: int, tokens: float, by_slots: NDArray[np.float64]) -> None:
        self._shown = min(self._shown + 1, SHOWN_MEMORY)
        shown, part = self.expectation, 1 / self._shown
        self.expectation = Expectation(
            shown.slots + (slots - shown.slots) * part,
            shown.tokens + (tokens - shown.tokens) * part,
            shown.by_slots + (by_slots - shown.by_slots) * part,
            shown.besides,
        )

    def _show_besides(self, seconds: float) -> None:
        shown = self.expectation
        self.expectation = shown._replace(besides=shown.besides + (seconds - shown.besides) / self._shown)


class _Grown(NamedTuple):
    """The chances of slots, falling.

    Attributes:
        chances: of those that were added.
        without_hidden: of those that would have been added without what is made of hidden states.
    """

    chances: Sequence[float]
    without_hidden: Sequence[float]


class _Best(NamedTuple):
    """A choice.

    Attributes:
        drafts: how many to take.
        expected: tokens expected of a pass that takes 0, 1 … drafts.
        seconds: of the step.
    """

    drafts: int
    expected: NDArray[np.float64]
    seconds: float

    @property
    def tokens(self) -> float:
        """Expected of the step."""
        return float(self.expected[self.drafts])

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds


def _by_slots(least: int, expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """(`MAX_DRAFTS` + 1,) tokens expected of a pass of 1, 2 … slots, `least` of which are in it in any case."""
    by_slots = np.full(MAX_DRAFTS + 1, expected[-1])
    by_slots[: least - 1] = 1.0
    by_slots[least - 1 : least - 1 + len(expected)] = expected[: max(len(by_slots) - least + 1, 0)]
    return by_slots


def _why(least: int, best: _Best, cost: float) -> Why:
    """Why this was chosen, where `least` slots were in the pass in any case; `cost` is in plain passes."""
    if least + best.drafts == 1:
        return Why.NONE
    if best.tokens > cost:
        return Why.PAYS
    return Why.TRIAL if least == 1 else Why.WINDOW


class _Kind(Enum):
    """Of steps, by what is to be done besides the pass."""

    PLAIN, DRAFTING, WITH_HIDDEN = range(3)


ALIKE = {_Kind.DRAFTING: _Kind.WITH_HIDDEN, _Kind.WITH_HIDDEN: _Kind.DRAFTING}
"""The kind that stands in for one until that has been timed."""


class _HostSeconds:
    """Seconds of steps outside their forward passes, by kind: means of about the last `HOST_MEMORY`."""

    def __init__(self) -> None:
        self._means = dict.fromkeys(_Kind, 0.0)
        self._counts = dict.fromkeys(_Kind, 0)

    def add(self, kind: _Kind, seconds: float) -> None:
        self._counts[kind] = min(self._counts[kind] + 1, HOST_MEMORY)
        self._means[kind] += (seconds - self._means[kind]) / self._counts[kind]

    def beyond(self, kind: _Kind, other: _Kind) -> float:
        """How much longer steps of one kind take than those of another."""
        return max(0.0, self._mean(kind) - self._mean(other))

    def _mean(self, kind: _Kind) -> float:
        """Until one kind of drafting has been timed, the other's mean stands in."""
        return self._means[kind if self._counts[kind] else ALIKE.get(kind, kind)]


def _given(chosen: Sequence[int], hidden: Hidden | None) -> Sequence[int]:
    """Return the chosen slots for which the pass gave hidden states: where those are of pseudo rows, the slots that
    carried some.
    """
    if hidden is None:
        return ()
    return chosen if hidden.pseudo is None else hidden.carriers


def _children(proposal: Proposal) -> dict[int, list[int]]:
    """The nodes below each node, and below `ROOT`; none of a proposal that is taken as a whole."""
    below: dict[int, list[int]] = {}
    if not proposal.whole:
        for index, node in enumerate(proposal.nodes):
            below.setdefault(node.parent, []).append(index)
    return below
