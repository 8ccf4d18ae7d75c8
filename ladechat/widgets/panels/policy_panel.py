"""How much the adaptive policy drafts, and why: what a pass costs by its slots, and what it should bring."""

from typing import NamedTuple

from rich.style import Style

from ladechat.protocol import Decision, PolicyChoice
from ladechat.widgets.panels.cost_chart import CostChart, slots_in_words
from ladechat.widgets.panels.panel import Needs, Row, StepPanel
from ladechat.widgets.steps.cost_curve import Curve, curve_of, value_at

NOTHING_DRAFTED = 1.05
"""Mean slots below which decoding is plain."""
MOST_POWERS = 7
"""Number of powers of two that a decision has: up to 64 slots."""
BARS_FADED = 0.5
ROWS_BESIDE_BARS = 3
"""Header, axis, words; and the figures, if there is room."""


class PolicyPanel(StepPanel):
    """Bars: the cost of a pass by its slots, in plain passes. Below them that cost, the tokens that it should bring,
    and the quotient of both, the speed: the pass has as many slots as make that highest. Costs and tokens are those of
    the shown pass; if nothing was proposed for it, they are means over recent passes.
    """

    NAME = "how much to draft"
    SHOWS = "What a pass costs by its slots, how many tokens it should bring, and the quotient: the speed."
    COMES = "It comes with auto."
    NEEDS = Needs(least=2, usual=6, most=13)

    def forget(self) -> None:
        super().forget()
        self._choice: PolicyChoice | None = None

    def show(self, choice: PolicyChoice | None) -> None:
        self._choice = choice
        self.redraw()

    def explain(self) -> str:
        text = "auto drafts as many tokens as bring the most tokens per second on this machine."
        shown = self._shown()
        if shown is None:
            return text
        whose = "this pass" if shown.expected else "recent passes"
        return (
            f"{text} {shown.wordings[0]}. The bars: what a pass of so many slots costs here, in plain passes. "
            f"Below them the tokens that {whose} should bring, and tokens ÷ cost, the speed: above 1.0 it pays."
        )

    def _shown(self) -> "Shown | None":
        """Return the data to show: of the pass if known, else of recent passes."""
        choice, step = self._choice, self._step
        if choice is None or not choice.costs or choice.costs[0].ms <= 0:
            return None
        if step is not None and (decision := step.decision) is not None:  # recordings may lack it
            return Shown(step.timing.slots, decision.tokens, decision.cost, decision)
        return Shown(choice.slots, choice.tokens, value_at(curve_of(choice.costs), choice.slots))

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles(self.NAME)
        choice, shown = self._choice, self._shown()
        if choice is None or shown is None:
            return self.only(width, titles, "Drafts as many tokens as pay here.")
        header = self.header(width, titles, shown.slots_in_words)
        expected = shown.expected or [(float(one.slots), one.tokens) for one in choice.expected]
        costs = _through(curve_of(choice.costs), shown.slots, shown.cost)
        chart = CostChart(costs, shown.slots, shown.cost, width)
        bars = self._chart(chart, expected, height)
        sentences = (self.sentence(text, width) for text in shown.wordings)
        room = height - 1 - len(bars)
        return [header, *bars, *next((rows for rows in sentences if len(rows) <= room), [])]

    def _chart(self, chart: CostChart, expected: Curve, height: int) -> list[Row]:
        """Return bars and axis; below them, if there is room, cost, tokens and speed, or the last two."""
        room = height - ROWS_BESIDE_BARS
        figures = next((count for count in (3, 2) if expected and chart.fits(room - count)), 0)
        bars = room - figures
        if not chart.fits(bars):
            return []
        own = Style(color=self.palette.style_of_step(0, 2).color, bold=True)
        rows = [*chart.bars(bars, self.faded(BARS_FADED), own, self.muted), chart.axis(own, self.muted)]
        if not figures:
            return rows

        def tokens(slots: float) -> float | None:
            return value_at(expected, slots) if slots <= expected[-1][0] + 1e-6 else None

        def speed(slots: float) -> float | None:
            brings, cost = tokens(slots), chart.cost_of(slots)
            return None if brings is None or not cost else brings / cost

        cost = [chart.numbers("cost", chart.cost_of, self.muted)] if figures > 2 else []
        return [*rows, *cost, chart.numbers("tokens", tokens, self.muted), chart.numbers("speed", speed, Style())]


class Shown(NamedTuple):
    """A pass and the decision for it, or recent passes, of which only the means are known.

    Attributes:
        slots: the number of slots.
        tokens: expected tokens of a pass.
        cost: of a pass, in plain passes.
        decision: of the pass; None for recent passes.
    """

    slots: float
    tokens: float
    cost: float
    decision: Decision | None = None

    @property
    def expected(self) -> Curve:
        """Expected tokens by slots, the chosen point included; empty if nothing was proposed, or for recent passes."""
        known = self.decision.expected[:MOST_POWERS] if self.decision else ()
        points = {float(1 << power): tokens for power, tokens in enumerate(known)}
        return sorted((points | {float(self.slots): self.tokens}).items()) if points else []

    @property
    def slots_in_words(self) -> list[str]:
        """The number of slots in words, in versions from long to short."""
        slots = slots_in_words(self.slots)
        return [f"this pass: {slots}" if self.decision else f"lately {slots} a pass", slots]

    @property
    def wordings(self) -> list[str]:
        """The choice and its reason, in versions from long to short. The speed panel measures the gain."""
        slots, cost, tokens = slots_in_words(self.slots), f"{self.cost:.1f}", f"should bring {self.tokens:.1f} tokens"
        if self.decision is None and self.slots < NOTHING_DRAFTED:
            return ["Lately no draft was worth its slot", "Nothing drafted lately"]
        short = f"cost {cost}×, {tokens}"
        if self.decision is None:
            whole = f"Lately passes of {slots} cost {cost} plain ones, and {tokens}"
            return [whole, f"Lately {short}", f"{self.tokens:.1f} tokens at {cost}× cost"]
        if self.slots == 1:
            paused = self.decision.why == "paused"
            why = "drafting has not paid lately, so it pauses" if paused else "none was worth its slot"
            return [f"No draft in this pass: {why}", "No draft: " + ("drafting pauses" if paused else why), "No draft"]
        price = f"{slots} cost {cost} plain passes"
        whole = f"{price} and {tokens}"
        match self.decision.why:
            case "trial":
                why = "Tried although it should not pay"
                shorter = [f"Tried at a loss: {short}", f"Tried: {short}", why, "Tried"]
                return [f"{why}: {whole}", f"{why}: {short}", *shorter]
            case "window":
                window = "The Jacobi window is in every pass here"
                return [f"{window}: {price}", window, "The Jacobi window"]
        return [f"This pass: {whole}", whole, f"{slots}: {short}", short, slots]


def _through(costs: Curve, slots: float, cost: float) -> Curve:
    """Shift the curve of recent mean costs so that it passes through this pass's (slots, cost). Overhead such as
    drafting is the same for any number of slots above one, but differs between passes.
    """
    if slots <= 1:
        return costs
    off = cost - value_at(costs, slots)
    return sorted(({size: price + off if size > 1 else price for size, price in costs} | {float(slots): cost}).items())
