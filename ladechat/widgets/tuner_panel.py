"""What `auto` has taken, and why: the cost of a pass of T slots, and over it what its tokens are worth."""

import math
from itertools import pairwise

from rich.style import Style

from ladechat.protocol import Expectation, Tuned
from ladechat.widgets.panel import Panel, Row, longest

SCALE_CELLS = 4
"""Cells of the scale at the left."""
MOST_SLOTS = 64
"""The largest pass that is drawn."""
TALLEST = 3.0
"""The height of the chart in plain passes, unless what was taken is higher."""
COST, TRIED, HOPED, TAKEN = "·", "○", "◌", "●"


class TunerPanel(Panel):
    """One column of cells for a number of slots (logarithmic), one row for a height in plain passes.

    The dotted line is what a pass costs; a circle is what settings yield, in tokens a step, at the slots that they use.
    Tokens above the line are a gain, and the farther the larger.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._tuned: Tuned | None = None

    def show(self, event: Tuned) -> None:
        """What was taken last."""
        self._tuned = event
        self.redraw()

    def clear(self) -> None:
        self._tuned = None
        self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        titles = ("auto · cost and gain of a pass", "auto · cost and gain", "auto")
        tuned, taken = self._tuned, _taken(self._tuned)
        if tuned is None or taken is None or not tuned.costs or not tuned.expectations[0].tokens_per_second:
            return [self.header(width, titles, [""]), *self.sentence("W, N and G follow what they yield here.", width)]
        plain = tuned.expectations[0]
        worth = taken.tokens_per_second / plain.tokens_per_second
        header = self.header(width, titles, [f"≈{worth:.2f}× plain"], Style(bold=True))
        says = longest(width, _in_words(tuned, taken))
        chart = self._chart(tuned, taken, width, height - 3)
        axis = _axis(width) if chart else ""
        return [header, *chart, *([[(axis, self.muted)]] if axis else []), [(says, self.muted)]]

    def _chart(self, tuned: Tuned, taken: Expectation, width: int, height: int) -> list[Row]:
        """The line and the circles, the highest row first; what was taken lies over everything else."""
        columns = width - SCALE_CELLS
        if height < 3 or columns < 12:
            return []
        plain_ms = tuned.costs[0].ms
        top = max(TALLEST, taken.tokens_per_step)
        cells: dict[tuple[int, int], str] = {}

        def put(slots: float, value: float, mark: str) -> None:
            if 1 <= slots <= MOST_SLOTS and 1 <= value <= top:
                cells[_row(value, top, height), _column(slots, columns)] = mark

        costs = [(one.slots, one.ms / plain_ms) for one in tuned.costs]
        for column in range(columns):
            slots = MOST_SLOTS ** (column / (columns - 1))
            if slots <= costs[-1][0]:
                put(slots, max(1.0, _between(costs, slots)), COST)
        for one in tuned.expectations[1:]:
            put(one.slots, one.tokens_per_step, TRIED if one.known else HOPED)
        put(taken.slots, taken.tokens_per_step, TAKEN)
        strong = {TAKEN: Style(color=self.palette.step(0, 2).color, bold=True), TRIED: Style(), HOPED: self.muted}
        rows: list[Row] = []
        for row in range(height):
            label = {0: f"{top:.1f}", height - 1: "1.0"}.get(row, "")
            line: Row = [(f"{label:>{SCALE_CELLS - 1}} ", self.muted)]
            line += [
                (mark, strong.get(mark, self.muted)) for mark in (cells.get((row, c), " ") for c in range(columns))
            ]
            rows.append(line)
        return rows


def _taken(tuned: Tuned | None) -> Expectation | None:
    """What is expected of the settings that were taken, if that was told."""
    if tuned is None:
        return None
    now = (tuned.window, tuned.ngram, tuned.guesses)
    return next((one for one in tuned.expectations if (one.window, one.ngram, one.guesses) == now), None)


def _in_words(tuned: Tuned, taken: Expectation) -> list[str]:
    """What was taken, in ever fewer words."""
    yields = f"{taken.tokens_per_step:.2f} tok/step at {taken.slots:.1f} slots"
    if tuned.exploring:
        name = f"trying W {tuned.window} N {tuned.ngram} G {tuned.guesses}"
    elif tuned.window:
        name = f"W {tuned.window} N {tuned.ngram} G {tuned.guesses}"
    elif taken.slots < 1.05:
        name = "plain: no guess is worth its slots"
    else:
        name = "guesses where they pay"
    return [f"{TAKEN} {name} · {yields}", f"{TAKEN} {name}", f"{TAKEN} {yields}"]


def _axis(width: int) -> str:
    """The slots under the columns, and which sign is which where there is room for it."""
    columns = width - SCALE_CELLS
    cells = [" "] * columns
    for slots in (1, 4, 16, MOST_SLOTS):
        label = str(slots)
        start = min(_column(slots, columns), columns - len(label))
        cells[start : start + len(label)] = label
    return "T".rjust(SCALE_CELLS - 1) + " " + "".join(cells)


def _row(value: float, top: float, height: int) -> int:
    return round((top - value) / (top - 1) * (height - 1))


def _column(slots: float, columns: int) -> int:
    return round(math.log(slots, MOST_SLOTS) * (columns - 1))


def _between(costs: list[tuple[int, float]], slots: float) -> float:
    """The cost of so many slots, in proportion between two that were measured."""
    for (low, below), (high, above) in pairwise(costs):
        if low <= slots <= high:
            return below + (above - below) * (slots - low) / (high - low)
    return costs[-1][1]
