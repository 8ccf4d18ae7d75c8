"""How much the adaptive policy drafts, and why: what a step costs by its slots, and how many tokens it should bring."""

import math
from collections.abc import Sequence
from itertools import pairwise

from rich.style import Style

from ladechat.protocol import PolicyChoice
from ladechat.widgets.panel import Panel, Row, longest

SCALE_CELLS = 6
"""Cells of the scale at the left."""
LEAST_COLUMNS, LEAST_ROWS = 12, 3
"""A smaller chart says nothing."""
LEAST_MOST_SLOTS, LEAST_TOP = 16, 2.0
"""The chart reaches at least so far to the right, in slots, and up, in plain passes."""
NOTHING_DRAFTED = 1.05
"""Mean slots below which decoding is plain."""
COST, TOKENS, TAKEN = "·", "○", "●"

Curve = Sequence[tuple[float, float]]
"""Points with rising abscissas."""


class PolicyPanel(Panel):
    """One column of cells for a number of slots (logarithmic), one row for a height.

    Dots show the cost of a step, in plain steps; circles the tokens that it is expected to bring. A plain step
    brings one token, so where the circles lie above the dots, drafting pays, and most where the gap is widest.
    """

    NAME = "how much to draft"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._choice: PolicyChoice | None = None

    def show(self, choice: PolicyChoice | None) -> None:
        """Draw the latest choice; None before there is one."""
        self._choice = choice
        self.redraw()

    def clear(self) -> None:
        self._choice = None
        self.redraw()

    def explain(self) -> str:
        """What was chosen, and what it rests on."""
        choice = self._choice
        text = "auto drafts as many tokens as bring the most tokens per second on this machine."
        if choice is None or not choice.costs or choice.costs[0].ms <= 0:
            return text
        if choice.slots < NOTHING_DRAFTED:
            return f"{text} Now no draft is worth its slots, so it decodes plainly."
        price = _at([(float(one.slots), one.ms / choice.costs[0].ms) for one in choice.costs], choice.slots)
        return (
            f"{text} Lately a pass had {_slots(choice)}: such a step costs {price:.1f} plain ones and should bring "
            f"{choice.tokens:.1f} tokens. Where the circles lie above the dots, drafting pays."
        )

    def rows(self, width: int, height: int) -> list[Row]:
        titles = ("how much to draft", "drafting")
        choice = self._choice
        if choice is None or not choice.costs or choice.costs[0].ms <= 0:
            sentence = "Drafts as many tokens as pay on this machine."
            return [self.header(width, titles, [""]), *self.sentence(sentence, width)]
        costs = [(float(one.slots), one.ms / choice.costs[0].ms) for one in choice.costs]
        price = _at(costs, choice.slots)
        state = "plain decoding" if choice.slots < NOTHING_DRAFTED else f"{_slots(choice)} a pass"
        header = self.header(width, titles, [state])
        words: Row = [(longest(width, _in_words(choice, price)), self.muted)]
        legend: Row = [(longest(width, LEGENDS), self.muted)]
        expected = [(float(one.slots), one.tokens) for one in choice.expected]
        chart = self._chart(costs, expected, (choice.slots, choice.tokens), width, height - 3)
        return [header, *chart, *([legend] if chart else []), words]

    def _chart(self, costs: Curve, expected: Curve, taken: tuple[float, float], width: int, height: int) -> list[Row]:
        """The curves, the highest row first, and the slots below them. The point taken lies over everything else."""
        columns = width - SCALE_CELLS
        height -= 1  # for the slots
        if columns < LEAST_COLUMNS or height < LEAST_ROWS:
            return []
        most = max(LEAST_MOST_SLOTS, taken[0], *(slots for slots, _ in [*costs, *expected]))
        top = max(LEAST_TOP, taken[1], *(tokens for _, tokens in expected), _at(costs, taken[0]))
        cells: dict[tuple[int, int], str] = {}

        def put(slots: float, value: float, mark: str) -> None:
            if 1 <= value <= top and slots >= 1:
                row = round((top - value) / (top - 1) * (height - 1))
                cells[row, _column(slots, most, columns)] = mark

        for curve, mark in ((costs, COST), (expected, TOKENS)):
            for column in range(columns):
                slots = most ** (column / (columns - 1))
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


LEGENDS = (
    f"{COST} cost of a step, in plain steps   {TOKENS} tokens it should bring",
    f"{COST} cost, in plain steps  {TOKENS} tokens expected",
    f"{COST} cost of a step  {TOKENS} tokens it brings",
    f"{COST} cost  {TOKENS} tokens",
)
"""What the signs mean, the longest that fits."""


def _in_words(choice: PolicyChoice, price: float) -> list[str]:
    """What was taken, in ever fewer words. The gain is left to the speed panel, which measures it."""
    if choice.slots < NOTHING_DRAFTED:
        return ["no draft is worth its slots now", "nothing drafted"]
    slots = f"{TAKEN} {_slots(choice)}"
    window = "  with the Jacobi window" if choice.window else ""
    whole = f"{slots}: a step costs {price:.1f} plain ones and should bring {choice.tokens:.1f} tokens"
    short = f"{slots}: costs {price:.1f}×, should bring {choice.tokens:.1f} tokens"
    shorter = f"{slots}: {choice.tokens:.1f} tokens at {price:.1f}× cost"
    return [whole + window, whole, short + window, short, shorter, slots]


def _slots(choice: PolicyChoice) -> str:
    return f"{choice.slots:.{int(choice.slots < 10)}f}".removesuffix(".0") + " slots"


def _slots_axis(most: float, columns: int) -> str:
    """Numbers of slots below their columns."""
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
    """The value of a curve, interpolated between its points, constant beyond them."""
    for (low, below), (high, above) in pairwise(curve):
        if slots <= high:
            return below + (above - below) * max(0.0, slots - low) / (high - low) if high > low else above
    return curve[-1][1]
