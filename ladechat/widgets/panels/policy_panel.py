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

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._choice: PolicyChoice | None = None

    def show(self, choice: PolicyChoice | None) -> None:
        """Draw a choice of the policy; None before the first."""
        self._choice = choice
        self.redraw()

    def clear(self) -> None:
        self._choice = None
        super().clear()

    @property
    def _pass(self) -> "PassChoice | None":
        """The pass that is shown; None before the first, and in recordings without decisions."""
        step = self._step
        return None if step is None or step.decision is None else PassChoice(step.timing.slots, step.decision)

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

    def _shown(self) -> "PassChoice | LateChoice | None":
        """Return the data to show: of the pass if known, else of recent passes."""
        choice = self._choice
        if choice is None or not choice.costs or choice.costs[0].ms <= 0:
            return None
        return self._pass or LateChoice(choice.slots, choice.tokens, _at(_costs(choice), choice.slots))

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles(self.NAME)
        choice, shown = self._choice, self._shown()
        if choice is None or shown is None:
            sentence = "Drafts as many tokens as pay here."
            return [self.header(width, titles, [""]), *self.sentence(sentence, width)]
        header = self.header(width, titles, shown.slots_in_words)
        words: Row = [(longest(width, shown.wordings), self.muted)]
        legend: Row = [(longest(width, shown.legends), self.muted)]
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
        styles = {TAKEN: Style(color=self.palette.step(0, 2).color, bold=True), TOKENS: Style(), COST: self.muted}
        rows: list[Row] = []
        for row in range(height):
            scale = {0: f"{top:.1f}", height - 1: "1.0"}.get(row, "")
            line: Row = [(f"{scale:>{SCALE_CELLS - 1}} ", self.muted)]
            for column in range(columns):
                mark = cells.get((row, column), " ")
                line.append((mark, styles.get(mark, self.muted)))
            rows.append(line)
        return [*rows, [(_slots_axis(most, columns), self.muted)]]


def _legends(whose: str, taken: str) -> tuple[str, ...]:
    """Return the legend in versions from long to short."""
    return (
        f"{whose}{COST} cost, in plain passes   {TOKENS} tokens it should bring   {TAKEN} {taken}",
        f"{whose}{COST} cost  {TOKENS} tokens expected  {TAKEN} {taken}",
        f"{whose}{COST} cost  {TOKENS} tokens  {TAKEN} {taken}",
        f"{COST} cost  {TOKENS} tokens  {TAKEN} {taken}",
    )


class PassChoice(NamedTuple):
    """One pass, and the decision for it."""

    slots: int
    decision: Decision

    @property
    def tokens(self) -> float:
        """Expected tokens of the pass."""
        return self.decision.tokens

    @property
    def cost(self) -> float:
        """Cost of the pass, in plain passes."""
        return self.decision.cost

    @property
    def expected(self) -> Curve:
        """Expected tokens by slots, including the chosen point; empty if nothing was proposed."""
        known = {float(1 << power): tokens for power, tokens in enumerate(self.decision.expected[:MOST_POWERS])}
        return sorted((known | {float(self.slots): self.tokens}).items()) if known else []

    @property
    def legends(self) -> tuple[str, ...]:
        return _legends("" if self.expected else "of late: ", "this pass")

    @property
    def slots_in_words(self) -> list[str]:
        """The number of slots in words, in versions from long to short."""
        return [f"this pass: {_slots(self.slots)}", _slots(self.slots)]

    @property
    def wordings(self) -> list[str]:
        """The decision and its reason, in versions from long to short. The speed panel measures the gain."""
        if self.slots == 1:
            paused = self.decision.why == "paused"
            why = "drafting has not paid lately, so it pauses" if paused else "none was worth its slot"
            return [f"No draft in this pass: {why}", "No draft: " + ("drafting pauses" if paused else why), "No draft"]
        price = f"{self.decision.cost:.1f} plain passes"
        whole = f"{_slots(self.slots)} cost {price} and should bring {self.tokens:.1f} tokens"
        short = f"cost {self.decision.cost:.1f}×, should bring {self.tokens:.1f} tokens"
        match self.decision.why:
            case "trial":
                return [f"A trial pass, to measure again: {whole}", f"A trial: {short}", "A trial pass"]
            case "window":
                window = "The Jacobi window is in every pass here"
                return [f"{window}: {_slots(self.slots)} cost {price}", window, "The Jacobi window"]
        return [f"This pass: {whole}", whole, f"{_slots(self.slots)}: {short}", short, _slots(self.slots)]


class LateChoice(NamedTuple):
    """Recent passes, of which only the means are known."""

    slots: float
    tokens: float
    cost: float

    @property
    def expected(self) -> Curve:
        """Empty: only the means by slots are known."""
        return []

    @property
    def legends(self) -> tuple[str, ...]:
        return _legends("of late: ", "chosen")

    @property
    def slots_in_words(self) -> list[str]:
        """The mean number of slots in words, in versions from long to short."""
        return [f"lately {_slots(self.slots)} a pass", _slots(self.slots)]

    @property
    def wordings(self) -> list[str]:
        """The choice, in versions from long to short."""
        if self.slots < NOTHING_DRAFTED:
            return ["Lately no draft was worth its slot", "Nothing drafted lately"]
        whole = f"cost {self.cost:.1f} plain ones, and should bring {self.tokens:.1f} tokens"
        return [
            f"Lately passes of {_slots(self.slots)} {whole}",
            f"Lately cost {self.cost:.1f}×, should bring {self.tokens:.1f} tokens",
            f"{self.tokens:.1f} tokens at {self.cost:.1f}× cost",
        ]


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
