"""The Jacobi window of one step: guesses of the latest passes for the coming tokens, and the n-grams they form."""

from typing import NamedTuple

from rich.style import Style

from ladechat import protocol
from ladechat.widgets.cells import cell_len, fit, shorten, visible
from ladechat.widgets.formatting import counted
from ladechat.widgets.panels.panel import Row, StepPanel
from ladechat.widgets.panels.pool_panel import WINDOW
from ladechat.widgets.steps.explained import format_explained

LABEL_CELLS = 4
MIN_COLUMN_CELLS = 6
MAX_COLUMN_CELLS = 12
LEAST_OF_LOWEST_ROW = 2
"""Cells of the fresh row that must fit for columns to be positions: the row begins N − 1 positions to the right."""
OLDEST_FADED = 0.33
"""How far the oldest row fades. More would make it hard to read on either background."""
FIXED = "="
"""Before a token, where columns are positions: the pass before had the same token there, a fixed point."""
LEAST_OF_ORIGIN = 12
"""Cells for accepted tokens, below which the sentence about their origin is shortened."""
MOST_FORMED = 100_000
"""Limit on the n-grams of an answer that are remembered, to find the origin of accepted ones."""


class PaidOff(NamedTuple):
    """A column of an earlier window that drafted tokens which came true.

    Attributes:
        pieces: the accepted tokens.
        column: its offset from the last token of its pass.
        passes: its age when accepted, in passes.
        step: the index of the step that accepted it.
        accepted: number of tokens that this step emitted.
    """

    pieces: list[str]
    column: int
    passes: int
    step: int
    accepted: int


class WindowPanel(StepPanel):
    """W columns, N − 1 rows of earlier passes above the row that this pass wrote.

    For Jacobi decoding it shows the block, which is shorter than W near the token limit.

    Row r, column i is at position r + i after the last token. If there is room, columns of the screen are these
    positions: each row begins one further to the right, and a column of the window, an n-gram, runs slanted, ↘. In a
    narrow panel the columns are upright, and the first line says where each begins. A token that the step emitted at
    exactly its position has the colour of the step.

    Attributes:
        width_set: the setting W at the step that is shown; 0 if unknown.
    """

    NAME = "Jacobi window"
    SHOWS = (
        "Guesses at W positions ahead, of the last N − 1 passes; a column of the window runs slanted (↘): an n-gram."
    )
    COMES = "It comes with lookahead and Jacobi decoding."

    width_set = 0

    def forget(self) -> None:
        super().forget()
        self._formed: dict[tuple[int, ...], tuple[int, int]] = {}
        self._paid_off: PaidOff | None = None

    def show_step(self, step: protocol.Step) -> None:
        super().show_step(step)
        if WINDOW in step.origins:
            self._paid_off = self._origin_of_accepted(step)
        if step.window is not None and step.window.rows:
            self._remember(step.index, step.window)

    def explain(self) -> str:
        """Return what the window guesses, and how many of its guesses this pass confirmed."""
        if self._step is None:
            return "Guesses at positions ahead, from the first pass on."
        view = self._step.window
        if view is None or not view.rows:
            return self._why_none(self._step)
        width, ages, shape = len(view.fresh), len(view.rows), _Shape.of(view, self.content_size.width - LABEL_CELLS - 1)
        cells = [(row + column, token) for row, ids in enumerate(view.row_ids) for column, token in enumerate(ids)]
        right = sum(self._came_true(position, token) is not None for position, token in cells)
        true = f"In this pass {right} of its {len(cells) - 1} guesses stood where the model then put the same token."
        shown = (*view.rows, view.fresh, self._paid_off.pieces if self._paid_off else ())
        if tokens := format_explained([piece for row in shown for piece in row]):
            true += f" {tokens}"
        if _is_block(self._step, view):
            cut = f", cut to {width - 1} as the answer is near its limit" if self._is_cut(view) else ""
            wide = max(self.width_set, width - 1)
            return f"A block of W = {wide} guesses after the last token{cut}; 'new' is what the pass made of it. {true}"
        runs = "runs slanted here (↘), one position on in each row" if shape.shifted else "is read downwards (↓)"
        return (
            f"Each pass guesses at W = {width} positions, with those of the passes before in view: N − 1 = {ages} "
            f"rows, the oldest on top. {true} A column of the window {runs}: an n-gram of N = {ages + 1} tokens, for "
            "the pool."
        )

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles("Jacobi window", "window")
        if self._step is None:
            return self.only(width, titles, "Fills with the first pass.")
        view = self._step.window
        if view is None or not view.rows:
            return self.only(width, titles, self._why_none(self._step))
        shape = _Shape.of(view, width - LABEL_CELLS - 1)
        more = f"+{counted(shape.hidden, 'column')}" if shape.hidden else ""
        block = _is_block(self._step, view)
        size = self._size_of_block(view) if block else f"W {len(view.fresh)} · N {len(view.rows) + 1}"
        legend = height >= len(view.rows) + 4
        origin = height >= len(view.rows) + 5
        header = self.header(width, titles, [f"{size} · {more}", size] if more and not legend else [size])
        grid = self._grid(view, shape, room=height - 1 - legend - origin)
        footer = [self.legend(_legends(shape.shifted, block), more, width)] if legend else []
        return [header, *grid, *footer, *([self._origin(width)] if origin else [])]

    def _is_cut(self, view: protocol.WindowView) -> bool:
        """Return whether the block is shorter than the setting W."""
        return len(view.fresh) - 1 < self.width_set

    def _size_of_block(self, view: protocol.WindowView) -> str:
        guesses = len(view.fresh) - 1
        return f"W {self.width_set}, cut to {guesses}" if self._is_cut(view) else f"W {guesses}"

    def _why_none(self, step: protocol.Step) -> str:
        if self.awaits_answer:
            return "Fills with the next answer: the last one was not decoded with this window."
        if step.draft is None and step.pool is None:
            return "Plain decoding: no window."
        return "No window in this pass: none wanted, or no room."

    def _grid(self, view: protocol.WindowView, shape: "_Shape", room: int) -> list[Row]:
        """Return the newest rows, as many as `room` allows, below the positions of the columns if a line is left."""
        ages = len(view.rows)
        first = max(0, ages + 1 - room)
        rows: list[Row] = []
        if room > ages + 1:
            positions = "".join(" " + fit(f"+{column}", shape.cells) for column in range(shape.columns))
            rows.append([(fit("at" if shape.shifted else "from", LABEL_CELLS), self.muted), (positions, self.muted)])
        for index in range(first, ages + 1):
            age = ages - index
            label = "new" if not age else f"…−{age}" if index == first and first else f"−{age}"
            rows.append([(f"{label:>{LABEL_CELLS}}", self.muted), *self._cells(view, index, shape)])
        return rows

    def _cells(self, view: protocol.WindowView, index: int, shape: "_Shape") -> Row:
        """Return the tokens of a row; the last row is the fresh one."""
        pieces, ids = _row(view, index)
        before = _row(view, index - 1)[1] if index and shape.shifted else []
        age = len(view.rows) - index
        start = index if shape.shifted else 0
        row: Row = [(" " * (shape.cells + 1) * start, Style())]
        for column, piece in enumerate(pieces[: shape.columns - start]):
            fixed = ids[column : column + 1] == before[column + 1 : column + 2]
            came_true = self._came_true(index + column, ids[column]) if age else None
            style = came_true or self.faded_text(OLDEST_FADED * age / len(view.rows))
            row += [(FIXED if fixed else " ", self.muted), *self.cell(piece, shape.cells, style)]
        return row

    def _came_true(self, position: int, token: int) -> Style | None:
        """Return the style of the step if it emitted this token at this position, else None."""
        step = self._step
        if step is None or not 0 < position <= len(step.token_ids) or step.token_ids[position - 1] != token:
            return None
        return self.step_style(step, position - 1)

    def _remember(self, step: int, view: protocol.WindowView) -> None:
        """Remember the n-grams that this pass completed, with all their prefixes, since a part may be accepted."""
        if len(self._formed) > MOST_FORMED:
            self._formed.clear()
        for column, ids in enumerate(zip(*view.row_ids, view.fresh_ids, strict=False)):
            for end in range(2, len(ids) + 1):
                self._formed[ids[:end]] = (step, column)

    def _origin_of_accepted(self, step: protocol.Step) -> PaidOff | None:
        """Return the column that a step's accepted drafts were copied from, if they came from the window."""
        if step.draft is None or step.window is None or not step.window.row_ids[:1]:
            return None
        draft, verdict = step.draft, "accepted"
        accepted = [i for i, found in enumerate(draft.verdicts) if found == verdict and draft.sources[i] == WINDOW]
        ids = tuple(draft.token_ids[i] for i in accepted)
        formed = self._formed.get((step.window.row_ids[0][0], *ids)) if ids else None
        if formed is None or formed[0] >= step.index:
            return None
        pieces = [draft.pieces[i] for i in accepted]
        return PaidOff(pieces, formed[1], step.index - formed[0], step.index, len(step.token_ids))

    def _origin(self, width: int) -> Row:
        """Return the row about the latest column that came true."""
        paid_off = self._paid_off
        if paid_off is None or self._step is None or paid_off.step > self._step.index:  # may be an earlier pass
            return []
        after = f" at +{paid_off.column}, accepted {counted(paid_off.passes, 'pass')} later"
        if width >= cell_len(" guessed") + cell_len(after) + LEAST_OF_ORIGIN:
            after = f" guessed{after}"
        text = shorten(" ".join(visible(piece) for piece in paid_off.pieces), max(width - len(after) - 2, 1))
        style = self.palette.style_of_step(paid_off.step, paid_off.accepted)
        return [("‹", self.muted), *self.token(text, style), ("›" + after, self.muted)]


class _Shape(NamedTuple):
    """How a window is laid out in a number of cells.

    Attributes:
        shifted: whether columns of the screen are positions.
        columns: number of visible columns.
        cells: cells of each.
        hidden: number of columns that do not fit.
    """

    shifted: bool
    columns: int
    cells: int
    hidden: int

    @classmethod
    def of(cls, view: protocol.WindowView, room: int) -> "_Shape":
        most = max(1, (room + 1) // (MIN_COLUMN_CELLS + 1))
        shifted = most >= len(view.rows) + min(LEAST_OF_LOWEST_ROW, len(view.fresh))
        wanted = len(view.fresh) + (len(view.rows) if shifted else 0)
        columns = min(wanted, most)
        return cls(shifted, columns, max(1, min(MAX_COLUMN_CELLS, (room + 1) // columns - 1)), wanted - columns)


def _row(view: protocol.WindowView, index: int) -> tuple[list[str], list[int]]:
    """Return pieces and tokens of a row; the one after the window's last is the fresh row."""
    if index < len(view.rows):
        return list(view.rows[index]), list(view.row_ids[index])
    return list(view.fresh), list(view.fresh_ids)


def _is_block(step: protocol.Step, view: protocol.WindowView) -> bool:
    """Return whether this is the block of Jacobi decoding. Its W excludes the last token, a window's includes it."""
    return len(view.rows) == 1 and step.pool is None


def _legends(shifted: bool, block: bool) -> tuple[str, ...]:
    if block:
        return ("= as the pass before · marked: came true", "= as before · marked: came true", "marked: came true")
    arrow = "↘" if shifted else "↓"
    column, short = f"read {arrow}: an n-gram of the window", f"read {arrow}: an n-gram"
    if not shifted:
        return (f"{column} · marked: came true", column, short, f"{arrow} n-grams")
    return (
        f"{column} · = as the pass before · marked: came true",
        f"{column} · = as before",
        f"{short} · = as before",
        column,
        short,
        f"{arrow} n-grams",
    )
