"""What a pass costs by its slots: bars on a logarithmic axis, on which one pass stands out, and figures below them."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rich.style import Style

from ladechat.widgets.cells import BLOCKS
from ladechat.widgets.formatting import plural
from ladechat.widgets.panels.panel import Row
from ladechat.widgets.steps.cost_curve import Curve, value_at

LABEL_CELLS = 7
"""Cells of the labels at the left."""
LEAST_COLUMNS, LEAST_ROWS = 12, 2
"""Minimum size of the bars; smaller ones are not drawn."""
LEAST_MOST_SLOTS, LEAST_TOP = 16, 2.0
"""Minimum range: to the right in slots, and upward in plain passes."""
GPU_MS: Mapping[int, float] = {1: 5.19, 8: 5.32, 16: 5.40, 64: 6.22, 120: 7.27}
"""Milliseconds of a pass by its slots on another machine: a 7B model on an H100, from docs/gpu.md."""
GPU_NAMES = "7B, H100: {}× at {}, not measured here", "H100: {}× at {}, not measured here", "not measured here"
"""What its row of bars is, with the cost of a pass of so many slots."""
GPU_SLOTS_NAMED = 64
HERE = "▲"


class CostChart(NamedTuple):
    """The bars, and rows that are aligned with them.

    Attributes:
        costs: the cost of a pass, in plain passes, by its slots.
        slots, cost: those of the pass whose bar is highlighted.
        width: in cells.
    """

    costs: Curve
    slots: float
    cost: float
    width: int

    @property
    def columns(self) -> int:
        return self.width - LABEL_CELLS

    @property
    def most(self) -> float:
        return max(LEAST_MOST_SLOTS, self.slots, self.costs[-1][0])

    @property
    def top(self) -> float:
        return max(LEAST_TOP, self.cost, *(cost for _, cost in self.costs))

    def fits(self, height: int) -> bool:
        return self.columns >= LEAST_COLUMNS and height >= LEAST_ROWS

    def bars(self, height: int, style: Style, own: Style, muted: Style) -> list[Row]:
        """Return the bars, highest row first; that of the pass has a style of its own. Nothing is drawn beyond what was
        measured, but for that pass.
        """
        here, last = self._column(self.slots), self._column(self.costs[-1][0])
        heights = [value_at(self.costs, self._slots(column)) for column in range(last + 1)]
        heights += [0.0] * (self.columns - len(heights))
        heights[here] = self.cost
        eighths = [round(cost / self.top * height * 8) for cost in heights]
        rows: list[Row] = []
        for row in range(height):
            above = 8 * (height - 1 - row)
            cells = [BLOCKS[min(max(high - above, 0), 8)] for high in eighths]
            scale = {0: f"{self.top:.1f}×", height - 1: "0"}.get(row, "")
            parts = "".join(cells[:here]), cells[here], "".join(cells[here + 1 :])
            styles = (style, own, style)
            rows.append([(f"{scale:>{LABEL_CELLS - 1}} ", muted), *zip(parts, styles, strict=True)])
        return rows

    def axis(self, own: Style, muted: Style) -> Row:
        """Return the numbers of slots, and a mark below the pass, unless one of them stands there."""
        text, here = self._aligned(lambda slots: str(int(slots))), self._column(self.slots)
        return [
            (_label("slots") + text[:here], muted),
            (HERE, own) if text[here] == " " else (text[here], own + Style(reverse=True)),
            (text[here + 1 :], muted),
        ]

    def numbers(self, label: str, value: Callable[[float], float | None], style: Style) -> Row:
        """Return a figure below each number of slots; None leaves it out."""

        def written(slots: float) -> str:
            number = value(slots)
            return "" if number is None else f"{number:.1f}"

        return [(_label(label) + self._aligned(written), style)]

    def gpu(self, height: int, style: Style, muted: Style) -> list[Row]:
        """Return the costs of passes on a GPU in a row of bars with the scale of bars that are `height` rows high, and
        what they are.
        """
        curve = [(float(slots), ms / GPU_MS[1]) for slots, ms in GPU_MS.items()]
        values = [value_at(curve, self._slots(column)) for column in range(self.columns)]
        cells = "".join(BLOCKS[min(max(round(value / self.top * height * 8), 1), 8)] for value in values)
        cost = f"{GPU_MS[GPU_SLOTS_NAMED] / GPU_MS[1]:.1f}"
        names = (name.format(cost, GPU_SLOTS_NAMED) for name in GPU_NAMES)
        name = next((name for name in names if len(name) <= self.columns), "")
        return [[(_label("a GPU"), muted), (cells, style)], [(_label("") + name, muted)]]

    def cost_of(self, slots: float) -> float | None:
        """Return the cost of a pass of so many slots, as far as it was measured."""
        return value_at(self.costs, slots) if slots <= self.costs[-1][0] + 1e-6 else None

    def _slots(self, column: int) -> float:
        return float(self.most ** (column / (self.columns - 1)))

    def _column(self, slots: float) -> int:
        return round(math.log(max(slots, 1), self.most) * (self.columns - 1))

    def _aligned(self, written: Callable[[float], str]) -> str:
        """Return texts for 1, 2, 4 … slots, each at its column, without those that have no room."""
        cells, free = [" "] * self.columns, 0
        for power in range(int(math.log2(self.most) + 1e-9) + 1):
            text = written(2.0**power)
            start = min(self._column(2.0**power), self.columns - len(text))
            if start >= free:
                cells[start : start + len(text)] = text
                free = start + len(text) + 1
        return "".join(cells)


def slots_in_words(slots: float) -> str:
    """Return a number of slots, which may be a mean, in words."""
    return f"{slots:.{int(slots < 10)}f}".removesuffix(".0") + f" {plural(slots, 'slot')}"


def _label(text: str) -> str:
    return f"{text:>{LABEL_CELLS - 1}} "
