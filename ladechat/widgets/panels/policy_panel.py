"""How much the adaptive policy drafts, and why: cost of a pass by its slots, and expected tokens."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.style import Style

from ladechat.protocol import Decision, PolicyChoice
from ladechat.widgets.formatting import plural
from ladechat.widgets.panels.panel import Row, StepPanel, longest

SCALE_CELLS = 6
"""Cells of the scale at the left."""
LEAST_COLUMNS, LEAST_ROWS = 12, 3
"""Minimum size of the chart; a smaller one is not drawn."""
LEAST_MOST_SLOTS, LEAST_TOP = 16, 2.0
"""Minimum range of the chart: to the right in slots, and upward in plain passes."""
NOTHING_DRAFTED = 1.05
"""Mean slots below which decoding is plain."""
MOST_POWERS = 7
"""Number of powers of two drawn for a decision: up to 64 slots."""
COST, TOKENS, TAKEN = "·", "○", "●"

Curve = Sequence[tuple[float, float]]
"""Points sorted by their first coordinate."""


class PolicyPanel(StepPanel):
    """One column of cells for a number of slots (logarithmic), one row for a height.

    Dots show the cost of a pass, in plain passes; circles show its expected tokens. A plain pass yields one token, so
    drafting pays where the circles lie above the dots, and most where the gap is widest. Both are those of the shown
    pass; if nothing was proposed for it, they are means over recent passes.
    """

    NAME = "how much to draft"
    SHOWS = "What a pass costs by its slots, and how many tokens it should bring."
    COMES = "It comes with auto."

    def forget(self) -> None:
        super().forget()
        self._choice: PolicyChoice | None = None

    def show(self, choice: PolicyChoice | None) -> None:
        """Draw a choice of the policy; None before the first."""
        self._choice = choice
        self.redraw()

    def explain(self) -> str:
        """Return what was chosen, and the numbers behind the decision."""
        text = "auto drafts as many tokens as bring the most tokens per second on this machine."
        shown = self._shown()
        if shown is None:
            return text
        whose = "this pass costs by its slots, the circles the tokens that its drafts should bring"
        if not shown.expected:
            whose = "passes cost of late by their slots, the circles the tokens that they should bring"
        return (
            f"{text} {shown.wordings[0]}. The dots are what {whose}. Where the circles lie above them, drafting pays."
        )

    def _shown(self) -> "Shown | None":
        """Return the data to show: of the pass if known, else of recent passes."""
        choice, step = self._choice, self._step
        if choice is None or not choice.costs or choice.costs[0].ms <= 0:
            return None
        if step is not None and (decision := step.decision) is not None:  # recordings may lack it
            return Shown(step.timing.slots, decision.tokens, decision.cost, decision)
        return Shown(choice.slots, choice.tokens, _at(_costs(choice), choice.slots))

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles(self.NAME)
        choice, shown = self._choice, self._shown()
        if choice is None or shown is None:
            return self.only(width, titles, "Drafts as many tokens as pay here.")
        header = self.header(width, titles, shown.slots_in_words)
        words: Row = [(longest(width, shown.wordings), self.muted)]
        legend: Row = [(longest(width, _legends(shown)), self.muted)]
        expected = shown.expected or [(float(one.slots), one.tokens) for one in choice.expected]
        costs = _through(_costs(choice), shown.slots, shown.cost)
        chart = self._chart(costs, expected, (shown.slots, shown.tokens), width, height - 3)
        return [header, *chart, *([legend] if chart else []), words]

    def _chart(self, costs: Curve, expected: Curve, taken: tuple[float, float], width: int, height: int) -> list[Row]:
        """Return the curves, highest row first, and the axis of slots. The chosen point is drawn over the curves."""
        columns = width - SCALE_CELLS
        height -= 1  # for the axis of slots
        if columns < LEAST_COLUMNS or height < LEAST_ROWS:
            return []
        most = max(LEAST_MOST_SLOTS, taken[0], *(slots for slots, _ in [*costs, *expected]))
        top = max(LEAST_TOP, taken[1], *(tokens for _, tokens in expected), _at(costs, taken[0]))
        cells: dict[tuple[int, int], str] = {}

        def put(slots: float, value: float, mark: str) -> None:
            if 1 <= value <= top and slots >= 1:
                row = round((top - value) / (top - 1) * (height - 1))
                cells[row, _column(slots, most, columns)] = mark

        own = _column(taken[0], most, columns) if taken[0] >= 1 else None
        for curve, mark in ((costs, COST), (expected, TOKENS)):
            for column in range(columns):
                slots = taken[0] if column == own else most ** (column / (columns - 1))
                if curve and slots <= curve[-1][0] + 1e-6:
                    put(slots, _at(curve, slots), mark)
        put(*taken, TAKEN)
        styles = {
            TAKEN: Style(color=self.palette.style_of_step(0, 2).color, bold=True),
            TOKENS: Style(),
            COST: self.muted,
        }
        rows: list[Row] = []
        for row in range(height):
            scale = {0: f"{top:.1f}", height - 1: "1.0"}.get(row, "")
            line: Row = [(f"{scale:>{SCALE_CELLS - 1}} ", self.muted)]
            for column in range(columns):
                mark = cells.get((row, column), " ")
                line.append((mark, styles.get(mark, self.muted)))
            rows.append(line)
        return [*rows, [(_slots_axis(most, columns), self.muted)]]


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
        slots = _slots(self.slots)
        return [f"this pass: {slots}" if self.decision else f"lately {slots} a pass", slots]

    @property
    def wordings(self) -> list[str]:
        """The choice and its reason, in versions from long to short. The speed panel measures the gain."""
        slots, cost, tokens = _slots(self.slots), f"{self.cost:.1f}", f"should bring {self.tokens:.1f} tokens"
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
                return [f"A trial pass, to measure again: {whole}", f"A trial: {short}", "A trial pass"]
            case "window":
                window = "The Jacobi window is in every pass here"
                return [f"{window}: {price}", window, "The Jacobi window"]
        return [f"This pass: {whole}", whole, f"{slots}: {short}", short, slots]


def _legends(shown: Shown) -> tuple[str, ...]:
    """Return the legend in versions from long to short."""
    whose, taken = "" if shown.expected else "of late: ", f"{TAKEN} {'this pass' if shown.decision else 'chosen'}"
    return (
        f"{whose}{COST} cost, in plain passes   {TOKENS} tokens it should bring   {taken}",
        f"{whose}{COST} cost  {TOKENS} tokens expected  {taken}",
        f"{whose}{COST} cost  {TOKENS} tokens  {taken}",
        f"{COST} cost  {TOKENS} tokens  {taken}",
    )


def _costs(choice: PolicyChoice) -> Curve:
    """Return the cost of a pass, in plain passes, by its slots."""
    return [(float(one.slots), one.ms / choice.costs[0].ms) for one in choice.costs]


def _through(costs: Curve, slots: float, cost: float) -> Curve:
    """Shift the curve of recent mean costs so that it passes through this pass's (slots, cost). Overhead such as
    drafting is the same for any number of slots above one, but differs between passes.
    """
    if slots <= 1:
        return costs
    off = cost - _at(costs, slots)
    return sorted(({size: price + off if size > 1 else price for size, price in costs} | {float(slots): cost}).items())


def _slots(slots: float) -> str:
    return f"{slots:.{int(slots < 10)}f}".removesuffix(".0") + f" {plural(slots, 'slot')}"


def _slots_axis(most: float, columns: int) -> str:
    """Return the axis: numbers of slots below their columns."""
    cells = [" "] * columns
    for slots in (1, 4, 16, 64, 256):
        label = str(slots)
        start = min(_column(slots, most, columns), columns - len(label))
        if slots <= most:
            cells[start : start + len(label)] = label
    return "slots".rjust(SCALE_CELLS - 1) + " " + "".join(cells)


def _column(slots: float, most: float, columns: int) -> int:
    return round(math.log(slots, most) * (columns - 1))


def _at(curve: Curve, slots: float) -> float:
    """Return the value of a curve at `slots`, interpolated between its points, constant beyond them."""
    for (low, below), (high, above) in pairwise(curve):
        if slots <= high:
            return below + (above - below) * max(0.0, slots - low) / (high - low) if high > low else above
    return curve[-1][1]
