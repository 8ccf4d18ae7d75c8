"""The adaptive policy: takes the most likely drafts, as many as maximise tokens per second on this machine."""

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, PassResult, Proposal
from ladechat.decoder.policy import NOT_TAKEN, PassPlan, add_whole
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.costs import PassCosts
from ladechat.tuning.learning import TRIAL, AcceptanceRates, Backoff, HiddenRows, RunningMean, leaf_chances

MAX_DRAFTS = 63  # in a pass: with the last token, 64 slots
LEAST_CHANCE = 0.001  # a less likely draft is not worth a slot on any device
UNPAID_STEPS, LONGEST_PAUSE = 8, 31  # after 8 steps in which it does not pay, drafting pauses: for 1 step, then 3, 7 …
OVERHEAD_MEMORY = 50  # the time that steps take outside their pass is a mean over about so many steps
PLAIN, DRAFTING, WITH_HIDDEN = range(3)  # kinds of steps, by the work outside the pass
ALIKE = (PLAIN, WITH_HIDDEN, DRAFTING)  # for each kind the one whose time is assumed until its own is known


class Forecast(NamedTuple):
    """The expectations by which a pass was chosen."""

    drafting: bool = False  # whether drafters were asked
    slots: int = 1
    least: int = 1  # how many of the slots were included unconditionally
    expected: Sequence[float] = (1.0,)  # tokens with 0, 1 … drafts, the most likely first
    cost: float = 1.0  # of the step, in plain passes
    overhead: float = 0.0  # seconds beyond a pass of so many slots: for pseudo rows, and outside the pass
    carriers: Sequence[int] = ()  # the slots for which hidden states are requested
    rows_pay: bool | None = None  # whether these are expected to pay; None where no drafter uses them
    saved: float | None = None  # seconds that drafts made from hidden states save; None without such drafts

    def by_slots(self) -> NDArray[np.float64]:
        """Return the (`MAX_DRAFTS` + 1,) expected tokens of the best pass of 1, 2 … slots."""
        best = [1.0] * (self.least - 1) + [*self.expected] + [self.expected[-1]] * MAX_DRAFTS
        return np.array(best[: MAX_DRAFTS + 1])

    @property
    def tokens(self) -> float:
        """The expected tokens of the pass."""
        return self.expected[self.slots - self.least]

    @property
    def pays(self) -> bool:
        """Whether the pass is expected to bring more tokens than plain ones would in its time."""
        return self.tokens > self.cost

    @property
    def continues(self) -> bool:
        """Whether drafting pays, or must go on: a window moves on with every pass."""
        return self.pays or self.least > 1


class AdaptivePolicy:
    """Chooses drafts best-first among all proposals.

    A node's chance is the product of the acceptance rates on its path. Taken by falling chance, n nodes are expected to
    yield 1 + Σ chances tokens from a pass of n + 1 slots: the n with the most tokens per second is taken. Where even
    that, with the time that drafting takes, is slower than plain decoding, drafting pauses for longer and longer; only
    drafters that take no time are still asked.
    """

    def __init__(self, costs: PassCosts, rates: AcceptanceRates | None = None) -> None:
        self.forecast = Forecast()  # of the latest pass
        self._costs = costs
        self._rates, self._rows = AcceptanceRates() if rates is None else rates, HiddenRows()
        self._backoff = Backoff(UNPAID_STEPS, 1, LONGEST_PAUSE)
        self._overheads = [RunningMean(OVERHEAD_MEMORY, 0.0) for _ in ALIKE]

    def drafting(self) -> bool:
        """Return whether to draft: False during a pause, where drafting does not pay."""
        return not self._backoff.pause

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        """Return the tree with the most expected tokens per second; whole proposals are always included."""
        tree = SlotTree(last_token)
        if not any(one.nodes or one.from_hidden for one in proposals):
            self.forecast = Forecast(drafting=self.drafting())
            return PassPlan(tree, [[] for _ in proposals], ())
        slots = [add_whole(tree, one) if one.whole else [NOT_TAKEN] * len(one.nodes) for one in proposals]
        least = len(tree)
        chances, without_hidden = self._grow(tree, proposals, slots)
        drafts, expected, seconds = self._best(least, chances)
        tree.truncate(least + drafts)
        carriers, rows_pay, saved = list[int](), None, None
        from_hidden = [one.nodes for one in proposals if one.from_hidden]
        if from_hidden:
            leaf = leaf_chances(tree.parents, [1.0, *[0.0] * (least - 1), *chances[:drafts]])
            carriers, rows_pay = self._rows.choose(leaf, self._beyond(WITH_HIDDEN, DRAFTING))
        if any(from_hidden):
            fewer, tokens, less = self._best(least, without_hidden)
            saved = expected[drafts] / (tokens[fewer] / less) - seconds
        overhead = self._overhead(carriers)
        cost = (self._costs.seconds(len(tree)) + overhead) / self._costs.seconds(1)
        self.forecast = Forecast(True, len(tree), least, expected, cost, overhead, carriers, rows_pay, saved)
        if not self.drafting() and not self.forecast.pays:
            self.forecast = Forecast()
            return PassPlan(SlotTree(last_token), [[NOT_TAKEN] * len(one.nodes) for one in proposals], ())
        taken = [[slot if slot < len(tree) else NOT_TAKEN for slot in own] for own in slots]
        # Hidden states of the last pass before a pause would not be used.
        pauses = self._backoff.left == 1 and not self.forecast.continues
        return PassPlan(tree, taken, () if pauses else carriers)

    def observe(self, result: PassResult, proposals: Sequence[Proposal], overhead: float) -> None:
        """Learn the cost of the step and the acceptance rates of the proposals."""
        forecast, seconds, hidden = self.forecast, result.forward_seconds, result.hidden
        for proposal in proposals:
            self._rates.observe(proposal.nodes, result.tokens)
        # Of the requested slots, a pass with pseudo rows may have left some out.
        carriers = () if hidden is None else forecast.carriers if hidden.pseudo is None else hidden.carriers
        kind = WITH_HIDDEN if carriers else DRAFTING if forecast.drafting else PLAIN
        # A single stall does not mean that the machine has become slow.
        self._overheads[kind].add(min(overhead, seconds))
        if carriers:
            self._rows.observe(carriers, seconds, self._costs.seconds(forecast.slots))
        else:
            self._costs.observe(forecast.slots, seconds)
        if forecast.saved is not None:
            self._rows.saved.add(forecast.saved)
        if forecast.rows_pay is not None:
            self._rows.backoff.observe(forecast.rows_pay, TRIAL)
        self.forecast = forecast._replace(overhead=self._overhead(carriers) if forecast.drafting else 0.0)
        # Drafts from hidden states come a step later than others: after a pause they need a second step.
        self._backoff.observe(forecast.continues, 2 if forecast.carriers else 1)

    def _overhead(self, carriers: Sequence[int]) -> float:
        """Return the seconds that a step with drafts takes in addition to a pass of its slots."""
        outside = self._beyond(WITH_HIDDEN if carriers else DRAFTING, PLAIN)
        return self._rows.row_seconds * len(carriers) + outside

    def _beyond(self, kind: int, other: int) -> float:
        """Return how many seconds longer steps of one kind take outside their passes than those of another."""
        means = [self._overheads[each if self._overheads[each].weight else ALIKE[each]] for each in (kind, other)]
        return max(0.0, float(means[0].value - means[1].value))

    def _best(self, least: int, chances: Sequence[float]) -> tuple[int, list[float], float]:
        """Return how many drafts to add to `least` slots, the expected tokens of 0, 1 … of them, the step's seconds."""
        expected = np.cumsum([1.0, *chances])
        seconds = self._costs.curve(least + len(chances))[least - 1 :] + self._beyond(DRAFTING, PLAIN)
        best = int(np.argmax(expected / seconds))
        return best, expected.tolist(), float(seconds[best])

    def _grow(self, tree: SlotTree, proposals: Sequence[Proposal], slots: list[list[int]]) -> tuple[list[float], ...]:
        """Add up to `MAX_DRAFTS` nodes to the tree, the most likely first, and fill in `slots`. Return the falling
        chances of the slots that were added, and of those that would be without hidden states.
        """
        children = [defaultdict[int, list[int]](list) for _ in proposals]  # of each node and `ROOT`
        for below, proposal in zip(children, proposals, strict=True):
            for node, one in enumerate(() if proposal.whole else proposal.nodes):
                below[one.parent].append(node)
        waiting = [(-1.0, index, ROOT) for index in range(len(proposals))]  # a heap: −chance, proposal, node
        chances, without_hidden = list[float](), dict[int, float]()
        while waiting and len(chances) < MAX_DRAFTS and -waiting[0][0] >= LEAST_CHANCE:
            negative, index, node = heapq.heappop(waiting)
            nodes, own = proposals[index].nodes, slots[index]
            if node != ROOT:
                parent, token, source, *_ = nodes[node]
                before = len(tree)
                own[node] = tree.add(0 if parent == ROOT else own[parent], token, source)
                if len(tree) > before:
                    chances.append(-negative)
                if not proposals[index].from_hidden:
                    without_hidden.setdefault(own[node], -negative)
            for child in children[index].get(node, ()):
                heapq.heappush(waiting, (negative * self._rates(nodes[child]), index, child))
        return chances, list(without_hidden.values())
