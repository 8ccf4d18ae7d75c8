"""The adaptive policy: takes the most likely drafts, as many as maximise tokens per second on this machine."""

import heapq
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, PassResult, Proposal
from ladechat.decoder.hidden import Hidden
from ladechat.decoder.policy import NOT_TAKEN, PassPlan, add_whole
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.backoff import Backoff
from ladechat.tuning.hidden_rows import HiddenRows, leaf_chances
from ladechat.tuning.rates import AcceptanceRates
from ladechat.tuning.running_mean import RunningMean

MAX_DRAFTS = 63
"""The most drafted tokens in a pass: with the last token, 64 slots."""
LEAST_CHANCE = 0.001
"""A less likely draft is not worth a slot on any device."""
UNPAID_STEPS, LONGEST_PAUSE = 8, 31
"""After so many steps in which drafting was not expected to pay, it pauses: for 1 step, then for 3, 7 …"""
OVERHEAD_MEMORY = 50
"""The time that steps take outside their pass is a mean over about so many steps."""


class Costs(Protocol):
    """The cost of passes: see `ladechat.tuning.costs.PassCosts`."""

    def curve(self, most: int) -> NDArray[np.float64]:
        """Return the (most,) seconds of a pass of 1, 2 … `most` slots."""
        ...

    def observe(self, slots: int, seconds: float) -> None:
        """Learn from a timed pass."""
        ...


class Forecast(NamedTuple):
    """The expectations by which a pass was chosen.

    Attributes:
        drafting: whether drafters were asked.
        slots: the number of slots of the pass.
        least: how many of them were included unconditionally.
        expected: the expected tokens with 0, 1 … drafts, the most likely first.
        cost: the cost of the step, in plain passes.
        overhead: seconds that the step takes beyond a pass of so many slots: for pseudo rows, and outside the pass.
        carriers: the slots for which hidden states are requested.
        rows_pay: whether these are expected to pay; None where no drafter uses them.
        saved: seconds that the drafts made from hidden states are expected to save; None without such drafts.
    """

    drafting: bool = False
    slots: int = 1
    least: int = 1
    expected: Sequence[float] = (1.0,)
    cost: float = 1.0
    overhead: float = 0.0
    carriers: Sequence[int] = ()
    rows_pay: bool | None = None
    saved: float | None = None

    @property
    def tokens(self) -> float:
        """The expected tokens of the pass."""
        return float(self.expected[self.slots - self.least])

    @property
    def pays(self) -> bool:
        """Whether the pass is expected to bring more tokens than plain ones would in its time."""
        return self.tokens > self.cost

    def by_slots(self) -> NDArray[np.float64]:
        """Return the (`MAX_DRAFTS` + 1,) expected tokens of the best pass of 1, 2 … slots."""
        tokens = np.full(MAX_DRAFTS + 1, self.expected[-1])
        tokens[: self.least - 1] = 1.0
        tokens[self.least - 1 : self.least - 1 + len(self.expected)] = self.expected[: len(tokens) - self.least + 1]
        return tokens


class AdaptivePolicy:
    """Chooses drafts best-first among all proposals.

    A node's chance is the product of the acceptance rates on its path. Taken by falling chance, n nodes are expected to
    yield 1 + Σ chances tokens from a pass of n + 1 slots: the n with the most tokens per second is taken. Where even
    that, including the time that drafting takes outside the pass, is slower than plain decoding, drafting pauses for
    longer and longer.

    Args:
        costs: the seconds of passes, by slots.

    Attributes:
        forecast: the expectations by which the latest pass was chosen.
    """

    def __init__(self, costs: Costs) -> None:
        self.forecast = Forecast()
        self._costs = costs
        self._rates, self._rows = AcceptanceRates(), HiddenRows()
        self._backoff = Backoff(UNPAID_STEPS, 1, LONGEST_PAUSE)
        self._overheads = {kind: RunningMean(OVERHEAD_MEMORY, 0.0) for kind in _Kind}

    def drafting(self) -> bool:
        """Return whether to draft: False during a pause, where drafting does not pay."""
        return not self._backoff.paused

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        """Return the tree with the most expected tokens per second; whole proposals are always included."""
        tree = SlotTree(last_token)
        if not self.drafting():
            self.forecast = Forecast()
            return PassPlan(tree, [[] for _ in proposals], ())
        slots = [add_whole(tree, one) if one.whole else [NOT_TAKEN] * len(one.nodes) for one in proposals]
        least = len(tree)
        grown = self._grow(tree, proposals, slots)
        best = self._best(least, grown.chances)
        tree.truncate(least + best.drafts)
        self.forecast = self._with_rows(Forecast(True, len(tree), least, best.expected), proposals, grown, best, tree)
        taken = [[slot if slot < len(tree) else NOT_TAKEN for slot in own] for own in slots]
        # Hidden states of the last pass before a pause would not be used.
        pauses = self._backoff.ends and not self._continues(self.forecast)
        return PassPlan(tree, taken, () if pauses else self.forecast.carriers)

    def _with_rows(
        self, forecast: Forecast, proposals: Sequence[Proposal], grown: "_Grown", best: "_Best", tree: SlotTree
    ) -> Forecast:
        """Return the forecast with the saving expected of hidden states, their carriers, and the cost of the step."""
        from_hidden = [one for one in proposals if one.from_hidden]
        if any(one.nodes for one in from_hidden):
            forecast = forecast._replace(
                saved=best.tokens / self._best(forecast.least, grown.without_hidden).rate - best.seconds
            )
        if from_hidden:
            leaf = leaf_chances(tree.parents, [1.0, *[0.0] * (forecast.least - 1), *grown.chances[: best.drafts]])
            paying = self._rows.paying(leaf, self._beyond(_Kind.WITH_HIDDEN, _Kind.DRAFTING))
            forecast = forecast._replace(carriers=paying or self._rows.tried(leaf), rows_pay=bool(paying))
        overhead = self._overhead(forecast.carriers)
        cost = (float(self._costs.curve(forecast.slots)[-1]) + overhead) / float(self._costs.curve(1)[0])
        return forecast._replace(overhead=overhead, cost=cost)

    def observe(self, result: PassResult, proposals: Sequence[Proposal], overhead: float) -> None:
        """Learn the cost of the step and the acceptance rates of the proposals."""
        forecast, seconds = self.forecast, result.forward_seconds
        for proposal in proposals:
            self._rates.observe(proposal.nodes, result.tokens)
        carriers = _given(forecast.carriers, result.hidden)
        # A single stall does not mean that the machine has become slow.
        self._overheads[_kind(forecast.drafting, carriers)].add(min(overhead, seconds))
        if carriers:
            self._rows.observe_pass(carriers, seconds, float(self._costs.curve(forecast.slots)[-1]))
        else:
            self._costs.observe(forecast.slots, seconds)
        if forecast.saved is not None:
            self._rows.observe_saving(forecast.saved)
        if forecast.rows_pay is not None:
            self._rows.observe_choice(forecast.rows_pay)
        self.forecast = forecast._replace(overhead=self._overhead(carriers) if forecast.drafting else 0.0)
        if not forecast.drafting:
            self._backoff.wait()
        elif self._continues(forecast):
            self._backoff.succeed()
        else:
            # Drafts from hidden states come a step later than others: after a pause they need a second step.
            self._backoff.fail(2 if forecast.carriers else 1)

    def _continues(self, forecast: Forecast) -> bool:
        """Return whether drafting was expected to pay, or must continue: a window moves on with every pass."""
        return forecast.pays or forecast.least > 1

    def _overhead(self, carriers: Sequence[int]) -> float:
        """Return the seconds that a step with drafts takes in addition to a pass of its slots."""
        outside = self._beyond(_kind(True, carriers), _Kind.PLAIN)
        return self._rows.row_seconds * len(carriers) + outside

    def _beyond(self, kind: "_Kind", other: "_Kind") -> float:
        """Return how many seconds longer steps of one kind take outside their passes than those of another."""
        return max(0.0, self._outside(kind) - self._outside(other))

    def _outside(self, kind: "_Kind") -> float:
        """Return the seconds outside the pass. Until one kind of drafting has been timed, the other's time is used."""
        return self._overheads[kind if self._overheads[kind].weight else ALIKE.get(kind, kind)].value

    def _best(self, least: int, chances: Sequence[float]) -> "_Best":
        """Return how many drafts to take, by falling chance, in addition to `least` slots that are always included."""
        expected = np.cumsum([1.0, *chances])
        seconds = self._costs.curve(least + len(chances))[least - 1 :] + self._beyond(_Kind.DRAFTING, _Kind.PLAIN)
        best = int(np.argmax(expected / seconds))
        return _Best(best, expected.tolist(), float(seconds[best]))

    def _grow(self, tree: SlotTree, proposals: Sequence[Proposal], slots: Sequence[list[int]]) -> "_Grown":
        """Add up to `MAX_DRAFTS` nodes to the tree, the most likely first, and return the chances of their slots.

        Fills in `slots`. A node whose token is already a child of its parent's slot shares that child.
        """
        children = [_children(proposal) for proposal in proposals]
        waiting: list[tuple[float, int, int]] = []  # −chance, proposal, node

        def wait_for(index: int, parent: int, chance: float) -> None:
            for node in children[index].get(parent, ()):
                heapq.heappush(waiting, (-chance * self._rates(proposals[index].nodes[node]), index, node))

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


class _Grown(NamedTuple):
    """The falling chances of the slots that were added, and of those that would be without hidden states."""

    chances: Sequence[float]
    without_hidden: Sequence[float]


class _Best(NamedTuple):
    """The number of drafts to take, the expected tokens of a pass with 0, 1 … drafts, and the step's seconds."""

    drafts: int
    expected: Sequence[float]
    seconds: float

    @property
    def tokens(self) -> float:
        """The expected tokens of the step."""
        return self.expected[self.drafts]

    @property
    def rate(self) -> float:
        """The expected tokens per second."""
        return self.tokens / self.seconds


class _Kind(Enum):
    """A kind of step, by the work outside the pass."""

    PLAIN, DRAFTING, WITH_HIDDEN = range(3)


ALIKE = {_Kind.DRAFTING: _Kind.WITH_HIDDEN, _Kind.WITH_HIDDEN: _Kind.DRAFTING}


def _kind(drafting: bool, carriers: Sequence[int]) -> _Kind:
    return _Kind.WITH_HIDDEN if carriers else _Kind.DRAFTING if drafting else _Kind.PLAIN


def _given(chosen: Sequence[int], hidden: Hidden | None) -> Sequence[int]:
    """Return the chosen slots for which the pass gave hidden states; with pseudo rows, the slots that carried them."""
    if hidden is None:
        return ()
    return chosen if hidden.pseudo is None else hidden.carriers


def _children(proposal: Proposal) -> dict[int, list[int]]:
    """Return the children of each node and of `ROOT`; empty for a proposal that is taken as a whole."""
    below: dict[int, list[int]] = {}
    if not proposal.whole:
        for index, node in enumerate(proposal.nodes):
            below.setdefault(node.parent, []).append(index)
    return below
