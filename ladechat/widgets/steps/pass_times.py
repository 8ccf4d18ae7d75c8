"""The times of passes, summed over an answer, and its speed compared with plain decoding."""

from collections.abc import Sequence
from operator import sub
from typing import NamedTuple

from ladechat.protocol import PassCost, Step, credible_speedup
from ladechat.widgets.steps.cost_curve import curve_of, value_at

MOST_BELOW_CURVE = 1.5
"""The largest credible factor between what passes of so many slots cost when they were timed alone, and what they cost
in an answer, where drafting and the like come on top. With three busy programs for each core it came to 1.3.
"""


class PassTimes(NamedTuple):
    """Sums over passes. Those without a measured plain pass to compare them with count in the first two only.

    Attributes:
        tokens: the tokens that they brought.
        step_ms: their time in milliseconds.
        compared: the number of passes with a measured plain pass.
        compared_ms, plain_ms: the time of those, and of as many plain passes.
        slots: the slots of those.
    """

    tokens: int = 0
    step_ms: float = 0.0
    compared: int = 0
    compared_ms: float = 0.0
    plain_ms: float = 0.0
    slots: int = 0

    def plus(self, step: Step) -> "PassTimes":
        timing, tokens = step.timing, self.tokens + len(step.token_ids)
        whole = self._replace(tokens=tokens, step_ms=self.step_ms + timing.step_ms)
        if not timing.plain_ms:
            return whole
        return whole._replace(
            compared=self.compared + 1,
            compared_ms=self.compared_ms + timing.step_ms,
            plain_ms=self.plain_ms + timing.plain_ms,
            slots=self.slots + timing.slots,
        )

    def since(self, earlier: "PassTimes") -> "PassTimes":
        return PassTimes(*map(sub, self, earlier))

    def means(self, tokens_per_pass: float, costs: Sequence[PassCost] = ()) -> "Times | None":
        """Return the mean times of the passes; None if no pass was compared with plain decoding.

        Args:
            tokens_per_pass: of the whole answer.
            costs: what passes cost on this machine, the first of one slot, as far as that is known.
        """
        if not self.compared:
            return None
        alone = value_at(curve_of(costs), self.slots / self.compared) if costs and costs[0].ms else 1.0
        return Times(self.compared_ms / self.compared, self.plain_ms / self.compared, tokens_per_pass, alone)


class Times(NamedTuple):
    """The mean time of a pass of an answer and of a plain one, in milliseconds, and the answer's tokens a pass.

    `cost_alone` is what a pass of so many slots costs when it is timed alone, in plain ones; 1 if that is not known.
    """

    pass_ms: float
    plain_ms: float
    tokens_per_pass: float
    cost_alone: float = 1.0

    @property
    def cost(self) -> float:
        """The cost of a pass, in plain ones."""
        return max(1.0, self.pass_ms / self.plain_ms)

    @property
    def speedup(self) -> float | None:
        """The speed compared with plain decoding; None if the machine was disturbed: if passes came out cheaper than
        plain ones, or far cheaper than when they were timed alone.
        """
        if self.cost_alone > MOST_BELOW_CURVE * self.cost:
            return None
        return credible_speedup(self.tokens_per_pass * self.plain_ms / self.pass_ms, self.tokens_per_pass)
