"""How much the adaptive policy drafts, and why: what a pass costs by its slots, and the tokens it should bring."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from rich.style import Style

from ladechat.protocol import Decision, PolicyChoice
from ladechat.widgets.formatting import plural
from ladechat.widgets.panel import Row, StepPanel, longest

SCALE_CELLS = 6
"""Cells of the scale at the left."""
LEAST_COLUMNS, LEAST_ROWS = 12, 3
"""A smaller chart says nothing."""
LEAST_MOST_SLOTS, LEAST_TOP = 16, 2.0
"""The chart reaches at least so far to the right, in slots, and up, in plain passes."""
NOTHING_DRAFTED = 1.05
"""Mean slots below which decoding is plain."""
MOST_POWERS = 7
"""A decision is drawn for at most 64 slots."""
COST, TOKENS, TAKEN = "·", "○", "●"

Curve = Sequence[tuple[float, float]]
"""Points with rising abscissas."""


class PolicyPanel(StepPanel):
    """One column of cells for a number of slots (logarithmic), one row for a height.

    Dots show the cost of a pass, in plain ones; circles the tokens that it is expected to bring. A plain pass brings
    one token, so where the circles lie above the dots, drafting pays, and most where the gap is widest. Both are those
    of the pass that is shown; where nothing was proposed for it, means over the latest passes.
    """

    NAME = "how much to draft"
    SHOWS = "What a pass costs by its slots, and how many tokens it should bring."
    COMES = "It comes with auto."

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._choice: PolicyChoice | None = None

    def show(self, choice: PolicyChoice | None) -> None:
        """Draw the latest choices; None before there is one."""
        self._choice = choice
        self.redraw()

    def clear(self) -> None:
        self._choice = None
        super().clear()

    @property
    def _pass(self) -> "PassChoice | None":
        """The pass that is shown; None before the first, and where a recording does not say what was decided."""
        step = self._step
        return None if step is None or step.decision is None else PassChoice(step.timing.slots, step.decision)

    def explain(self) -> str:
        """What was chosen, and what it rests on."""
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
        """What there is to say: of the pass, else of the latest passes."""
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
        header = self.header(width, titles, shown.slots_told)
        words: Row = [(longest(width, shown.wordings), self.muted)]
        legend: Row = [(longest(width, shown.legends), self.muted)]
        expected = shown.expected or [(float(one.slots), one.tokens) for one in choice.expected]
        costs = _through(_costs(choice), shown.slots, shown.cost)
        chart = self._chart(costs, expected, (shown.slots, shown.tokens), width, height - 3)
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
    """What the signs mean, in ever fewer words."""
    return (
        f"{whose}{COST} cost, in plain passes   {TOKENS} tokens it should bring   {TAKEN} {taken}",
        f"{whose}{COST} cost  {TOKENS} tokens expected  {TAKEN} {taken}",
        f"{whose}{COST} cost  {TOKENS} tokens  {TAKEN} {taken}",
        f"{COST} cost  {TOKENS} tokens  {TAKEN} {taken}",
    )


class PassChoice(NamedTuple):
    """One pass, and what was decided for it."""

    slots: int
    decision: Decision

    @property
    def tokens(self) -> float:
        """Expected of it."""
        return self.decision.tokens

    @property
    def cost(self) -> float:
        """In plain passes."""
        return self.decision.cost

    @property
    def expected(self) -> Curve:
        """What its drafts should bring, by slots, through the point taken; empty where nothing was proposed."""
        known = {float(1 << power): tokens for power, tokens in enumerate(self.decision.expected[:MOST_POWERS])}
        return sorted((known | {float(self.slots): self.tokens}).items()) if known else []

    @property
    def legends(self) -> tuple[str, ...]:
        return _legends("" if self.expected else "of late: ", "this pass")

    @property
    def slots_told(self) -> list[str]:
        """How many slots it has."""
        return [f"this pass: {_slots(self.slots)}", _slots(self.slots)]

    @property
    def wordings(self) -> list[str]:
        """What was decided, and why, in ever fewer words. The gain is left to the speed panel, which measures it."""
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
    """The latest passes, where no more than their means is known."""

    slots: float
    tokens: float
    cost: float

    @property
    def expected(self) -> Curve:
        """No more than the means by slots."""
        return []

    @property
    def legends(self) -> tuple[str, ...]:
        return _legends("of late: ", "chosen")

    @property
    def slots_told(self) -> list[str]:
        """How many slots they had."""
        return [f"lately {_slots(self.slots)} a pass", _slots(self.slots)]

    @property
    def wordings(self) -> list[str]:
        """What was chosen, in ever fewer words."""
        if self.slots < NOTHING_DRAFTED:
            return ["Lately no draft was worth its slot", "Nothing drafted lately"]
        whole = f"cost {self.cost:.1f} plain ones, and should bring {self.tokens:.1f} tokens"
        return [
            f"Lately passes of {_slots(self.slots)} {whole}",
            f"Lately cost {self.cost:.1f}×, should bring {self.tokens:.1f} tokens",
            f"{self.tokens:.1f} tokens at {self.cost:.1f}× cost",
        ]


def _costs(choice: PolicyChoice) -> Curve:
    """What passes cost by their slots, in plain ones."""
    return [(float(one.slots), one.ms / choice.costs[0].ms) for one in choice.costs]


def _through(costs: Curve, slots: float, cost: float) -> Curve:
    """Shifts the curve of recent mean costs so that it passes through this pass's (slots, cost). Overhead such as
    drafting is the same for any number of slots above one, but differs between passes.
    """
    if slots <= 1:
        return costs
    off = cost - _at(costs, slots)
    return sorted(({size: price + off if size > 1 else price for size, price in costs} | {float(slots): cost}).items())


def _slots(slots: float) -> str:
    return f"{slots:.{int(slots < 10)}f}".removesuffix(".0") + f" {plural(slots, 'slot')}"


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
