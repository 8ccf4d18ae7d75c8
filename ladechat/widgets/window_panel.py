"""The Jacobi window of one step: the guesses of the last passes at the tokens to come, and the n-grams they form."""

from rich.style import Style

from ladechat import protocol
from ladechat.widgets.cells import fit
from ladechat.widgets.panel import Panel, Row

LABEL_CELLS = 4
MIN_COLUMN_CELLS = 6
MAX_COLUMN_CELLS = 12
OLDEST_FADED = 0.33
"""How far the oldest row fades. More would leave it hard to read on either background."""


class WindowPanel(Panel):
    """W columns side by side, N − 1 rows of earlier passes above the row that this pass wrote.

    Column i begins at position +i (+0 is the last token) and goes on by one position a row, so that it reads downwards
    as an n-gram. A token that stood at the very position where this step then emitted it wears the colour of the step.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._step: protocol.Step | None = None

    def show_step(self, step: protocol.Step) -> None:
        self._step = step
        self.redraw()

    def clear(self) -> None:
        self._step = None
        self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        titles = ("Jacobi window", "window")
        if self._step is None:
            return [self.header(width, titles, [""]), *self.sentence("Fills with the first step.", width)]
        view = self._step.window
        if view is None or not view.rows:
            return [self.header(width, titles, [""]), *self.sentence(_why_none(self._step), width)]
        columns, cells = _columns(len(view.fresh), width - LABEL_CELLS - 1)
        hidden = len(view.fresh) - columns
        more = f"+{hidden} more" if hidden else ""
        size = f"W {len(view.fresh)} · N {len(view.rows) + 1}"
        legend = height >= len(view.rows) + 4
        header = self.header(width, titles, [f"{size} · {more}", size] if more and not legend else [size])
        grid = self._grid(view, columns, cells, room=height - 1 - legend)
        texts = (
            "columns ↓ are n-grams · rows: passes ago · marked: came true",
            "columns ↓ are n-grams · marked: came true",
            "columns ↓ are n-grams",
            "↓ n-grams",
        )
        return [header, *grid, self.legend(texts, more, width)] if legend else [header, *grid]

    def _grid(self, view: protocol.WindowView, columns: int, cells: int, room: int) -> list[Row]:
        """The newest rows, as many as `room` lines take; above them, if one is left, where each column begins."""
        ages = len(view.rows)
        first = max(0, ages + 1 - room)
        rows: list[Row] = []
        if room > ages + 1:
            positions = [fit(f"+{column}", cells) for column in range(columns)]
            rows.append([(fit("from", LABEL_CELLS), self.muted), (" " + " ".join(positions), self.muted)])
        for index in range(first, ages):
            age = ages - index
            label = f"…−{age}" if index == first and first else f"−{age}"
            row: Row = [(f"{label:>{LABEL_CELLS}}", self.muted)]
            plain = self.faded(OLDEST_FADED * age / ages)
            for column, piece in enumerate(view.rows[index][:columns]):
                came_true = self._came_true(index + column, view.row_ids[index][column])
                row += [(" ", Style()), *self.cell(piece, cells, came_true or plain)]
            rows.append(row)
        fresh: Row = [(f"{'new':>{LABEL_CELLS}}", self.muted)]
        for piece in view.fresh[:columns]:
            fresh += [(" ", Style()), *self.cell(piece, cells, Style())]
        return [*rows, fresh]

    def _came_true(self, position: int, token: int) -> Style | None:
        """The style of the step, if it emitted this token at this position."""
        step = self._step
        if step is None or not 0 < position <= len(step.token_ids) or step.token_ids[position - 1] != token:
            return None
        return self.palette.step(step.index, len(step.token_ids))


def _columns(window: int, room: int) -> tuple[int, int]:
    """How many of `window` columns fit into `room` cells, and how many cells each then has."""
    columns = max(1, min(window, (room + 1) // (MIN_COLUMN_CELLS + 1)))
    return columns, max(1, min(MAX_COLUMN_CELLS, (room + 1) // columns - 1))


def _why_none(step: protocol.Step) -> str:
    if step.draft is None and step.pool is None:
        return "Plain decoding: no window."
    return "No window in this step: none wanted, or no room."
