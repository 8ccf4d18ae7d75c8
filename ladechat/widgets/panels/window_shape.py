"""How the Jacobi window is laid out in a number of cells."""

from typing import NamedTuple

from ladechat import protocol

LABEL_CELLS = 4
MIN_COLUMN_CELLS = 6
MAX_COLUMN_CELLS = 12
LEAST_OF_LOWEST_ROW = 2
"""Cells of the fresh row that must fit for columns to be positions: the row begins N − 1 positions to the right."""


class Shape(NamedTuple):
    """How a window is laid out.

    Attributes:
        shifted: whether columns of the screen are positions.
        columns: number of visible columns.
        cells: cells of each.
        hidden: number of columns that do not fit.
        first: the first visible column.
    """

    shifted: bool
    columns: int
    cells: int
    hidden: int
    first: int = 0

    @classmethod
    def of(cls, view: protocol.WindowView, width: int, last: int | None = None) -> "Shape":
        """Return the layout in a panel of `width` cells. `last` is a column that is visible in any case: its position,
        and its column in the window.
        """
        room = width - LABEL_CELLS - 1
        most = max(1, (room + 1) // (MIN_COLUMN_CELLS + 1))
        shifted = most >= len(view.rows) + min(LEAST_OF_LOWEST_ROW, len(view.fresh))
        wanted = len(view.fresh) + (len(view.rows) if shifted else 0)
        columns = min(wanted, most)
        first = 0 if last is None else max(0, min(last, wanted - 1) - columns + 1)
        cells = max(1, min(MAX_COLUMN_CELLS, (room + 1) // columns - 1))
        return cls(shifted, columns, cells, wanted - columns, first)

    def place(self, row: int, column: int) -> int:
        """Return the cell of the screen at which a cell of the window begins, counted from the panel's left edge."""
        return LABEL_CELLS + 1 + (self._column(row, column) - self.first) * (self.cells + 1)

    def column_at(self, row: int, place: int) -> int:
        """Return the column of the window that is at a cell of the screen, in a row of the window."""
        return (place - LABEL_CELLS) // (self.cells + 1) + self.first - (row if self.shifted else 0)

    def visible(self, row: int, columns: int) -> range:
        """Return which of a row's `columns` are visible."""
        shift = row if self.shifted else 0
        return range(max(self.first - shift, 0), min(max(self.first + self.columns - shift, 0), columns))

    def _column(self, row: int, column: int) -> int:
        return column + (row if self.shifted else 0)
