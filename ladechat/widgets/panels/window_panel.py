"""The Jacobi window of one step: guesses of the latest passes for the coming tokens, and the n-grams they form."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import fit, shorten, visible
from ladechat.widgets.formatting import counted
from ladechat.widgets.panels.panel import LEAST_ROWS, Needs, Row, StepPanel
from ladechat.widgets.panels.window_marks import SAME, Marks, row_of
from ladechat.widgets.panels.window_shape import LABEL_CELLS, Shape
from ladechat.widgets.steps.births import Birth, Births
from ladechat.widgets.steps.draft_tree import sight, slots_of, window_nodes
from ladechat.widgets.steps.explained import format_explained
from ladechat.widgets.steps.guesses import WINDOW

OLDEST_FADED = 0.33
"""How far the oldest row fades. More would make it hard to read on either background."""
LEAST_OF_ORIGIN = 12
"""Cells for accepted tokens, below which the sentence about their origin is shortened."""
DROPS = "into the pool"
NOT_REACHED = VERDICT_MARKS["untested"]


class PaidOff(NamedTuple):
    """Drafts that were formed by an earlier window, and came true.

    Attributes:
        pieces: the accepted tokens.
        birth: when the window formed them.
        step: the index of the step that accepted them.
        accepted: number of tokens that this step emitted.
    """

    pieces: list[str]
    birth: Birth
    step: int
    accepted: int


class WindowPanel(StepPanel, can_focus=True):
    """W columns, N − 1 rows of earlier passes above the row that this pass wrote.

    For Jacobi decoding it shows the block, which is shorter than W near the token limit.

    Row r, column i is at position r + i after the last token. If there is room, columns of the screen are these
    positions: each row begins one further to the right, and a column of the window, an n-gram, is a diagonal, ↘. In a
    narrow panel diagonals stand upright, and the first line says where each begins. A token that the step emitted at
    exactly its position has the colour of the step. Before each draft is the model's verdict on it, quiet if it shares
    a slot with one above.

    One diagonal can be marked, or what one slot sees. What is marked is visible if not all columns are.

    Args:
        births: gets the n-grams of each pass.

    Attributes:
        width_set: the setting W at the step that is shown; 0 if unknown.
    """

    DEFAULT_CSS = """
    WindowPanel:focus > .panel--title { color: $text-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "point(1)", "Next", key_display="← →", id="window.next", tooltip="The next diagonal or slot."),
        Binding("left", "point(-1)", "Before", show=False, id="window.before", tooltip="The diagonal or slot before."),
        Binding("enter", "see", "Sees", id="window.see", tooltip="What its slot sees, or the diagonal again."),
        Binding("escape", "unmark", "Unmark", id="window.unmark", tooltip="Mark nothing."),
    ]

    NAME = "Jacobi window"
    SHOWS = "Guesses of the last N − 1 passes, W tokens a row; along a diagonal (↘): an n-gram."
    COMES = "It comes with lookahead and Jacobi decoding."

    width_set = 0
    ages: reactive[int] = reactive(2, layout=True)
    """The number of rows of earlier passes, N − 1, that there is to be room for."""
    diagonal: reactive[int | None] = reactive(None)
    """The marked diagonal, by its column in the oldest row; None for none."""
    slot: reactive[int | None] = reactive(None)
    """The index of the slot of which is shown what it sees; None for none."""
    beside_mask: reactive[bool] = reactive(False)
    """Whether the attention mask is shown too, which says what the slot sees."""

    @dataclass
    class PointedAt(Message):
        """The user has pointed at a diagonal, or at a slot, or at neither."""

        diagonal: int | None = None
        slot: int | None = None

    def __init__(self, births: Births | None = None, *, id: str | None = None) -> None:
        self._births = births or Births()
        self._grid_at = (0, 0, Shape(False, 1, 1, 0))
        """The line of the first visible row of the window, that row, and the layout, as they were drawn last."""
        super().__init__(id=id)

    def forget(self) -> None:
        super().forget()
        self._births.clear()
        self._paid_off: PaidOff | None = None

    def show_step(self, step: protocol.Step) -> None:
        super().show_step(step)
        self._births.add(step)
        if WINDOW in step.origins:
            self._paid_off = self._origin_of_accepted(step)

    def allow_focus(self) -> bool:
        """Return whether it can have the focus: not if it is left out."""
        return super().allow_focus() and not (self.optional and not self.region.area)

    # --- pointing -----------------------------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Mark the diagonal of the clicked cell; clicked again, what its slot sees; then nothing."""
        view = None if self._step is None else self._step.window
        top, first, shape = self._grid_at
        row = first + event.y - top
        if view is None or not view.rows or event.y < top or not first <= row <= len(view.rows):
            return
        column = shape.column_at(row, event.x)
        if not 0 <= column < len(view.fresh):
            return
        slot = self._slot_at(row, column)
        if slot is not None and self.slot == slot:
            self.post_message(self.PointedAt())
        elif slot is not None and (self.diagonal == column or self._is_block):
            self.post_message(self.PointedAt(slot=slot))
        else:
            self.post_message(self.PointedAt(None if self.diagonal == column or self._is_block else column))

    def action_point(self, places: int) -> None:
        """Mark the next diagonal, or the next slot; the last one is followed by the first."""
        view = None if self._step is None else self._step.window
        if self._step is None or view is None or not view.rows:
            return
        if self.slot is not None or self._is_block:
            count = len(slots_of(self._step))
            self.post_message(self.PointedAt(slot=((-1 if self.slot is None else self.slot) + places) % count))
        else:
            before = -1 if self.diagonal is None and places > 0 else self.diagonal or 0
            self.post_message(self.PointedAt((before + places) % len(view.fresh)))

    def action_see(self) -> None:
        """Change between the marked diagonal and what the slot at its lower end sees."""
        view = None if self._step is None else self._step.window
        if view is None or not view.rows:
            return
        if self.slot is not None and not self._is_block:
            self.post_message(self.PointedAt(self.diagonal or 0))
        else:
            self.post_message(self.PointedAt(slot=self._slot_at(len(view.rows) - 1, self.diagonal or 0)))

    def action_unmark(self) -> None:
        """Mark nothing, and give the focus back."""
        self.post_message(self.PointedAt())
        self.screen.set_focus(None)
        if self.screen.AUTO_FOCUS:
            self.screen.focus_next(self.screen.AUTO_FOCUS)

    def _slot_at(self, row: int, column: int) -> int | None:
        """Return the slot of a cell; None in the fresh row, which is written by this pass."""
        step = self._step
        if step is None or step.window is None or step.draft is None or row >= len(step.window.rows):
            return None
        node = window_nodes(step.draft, step.window)[row][column]
        return None if node is None else node + 1

    @property
    def _is_block(self) -> bool:
        """Whether this is the block of Jacobi decoding. Its W excludes the last token, a window's includes it."""
        step = self._step
        return step is not None and step.window is not None and len(step.window.rows) == 1 and step.pool is None

    # --- in words -----------------------------------------------------------------------------------------------------

    def explain(self) -> str:
        if self._step is None:
            return "Shows guesses, from the first pass on."
        view = self._step.window
        if view is None or not view.rows:
            return self._why_none(self._step)
        width, ages, shape = len(view.fresh), len(view.rows), Shape.of(view, self.content_size.width)
        cells = [(row + column, token) for row, ids in enumerate(view.row_ids) for column, token in enumerate(ids)]
        right = sum(self._came_true(position, token) is not None for position, token in cells)
        verb = "was" if right == 1 else "were"
        true = f"{right} of its {counted(len(cells) - 1, 'guess')} {verb} the right token at the right place."
        shown = (*view.rows, view.fresh, self._paid_off.pieces if self._paid_off else ())
        if tokens := format_explained([piece for row in shown for piece in row]):
            true += f" {tokens}"
        if self._is_block:
            cut = f", cut to {width - 1} as the answer is near its limit" if self._is_cut(view) else ""
            wide = max(self.width_set, width - 1)
            return f"W = {wide} guesses after the last token{cut}; 'new' is what the pass made of it. {true}"
        arrow = "↘ from the top row" if shape.shifted else "↓ from the top"
        first = "" if self._step.index else " At the start of an answer it holds random tokens of the text."
        return (
            f"A pass reads the rows that the N − 1 = {ages} passes before wrote, the oldest on top, and writes 'new': "
            f"W = {width} guesses. {true} A diagonal {arrow} down to 'new' is an n-gram of N = {ages + 1} tokens, each "
            "written after those above it; it goes into the pool. Then the window moves by one place, whatever the "
            f"pass brings.{first} A click on a token marks its diagonal, a second click what it sees."
        )

    def _is_cut(self, view: protocol.WindowView) -> bool:
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

    # --- drawing ------------------------------------------------------------------------------------------------------

    def needs(self) -> Needs:
        return Needs(LEAST_ROWS - 1, self.ages + 3, self.ages + 5)  # the last two: a legend, and what came true

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles("Jacobi window", "window")
        if self._step is None:
            return self.only(width, titles, "Fills with the first pass.")
        view = self._step.window
        if view is None or not view.rows:
            return self.only(width, titles, self._why_none(self._step))
        marks = Marks.of(self._step, view, self.diagonal, self.slot, shifted=Shape.of(view, width).shifted)
        shape = Shape.of(view, width, marks.last)
        more = f"+{counted(shape.hidden, 'column')}" if shape.hidden else ""
        size = self._size_of_block(view) if self._is_block else f"W {len(view.fresh)} · N {len(view.rows) + 1}"
        legend = height >= len(view.rows) + 4
        origin = height >= len(view.rows) + 5
        arrow = legend and marks.diagonal is not None  # in place of the legend, which has no room for more
        header = self.header(width, titles, [f"{size} · {more}", size] if more and (arrow or not legend) else [size])
        grid = self._grid(view, shape, marks, room=height - 1 - legend - origin)
        return [header, *grid, *self._footer(view, shape, marks, more, width)[: legend + origin]]

    def _footer(self, view: protocol.WindowView, shape: Shape, marks: Marks, more: str, width: int) -> list[Row]:
        """Return the two lines below the window: what is marked, or a legend; and what came true."""
        assert self._step is not None
        if marks.slot is not None and not self.beside_mask:
            return self.sentence(sight(slots_of(self._step), marks.slot, len(view.rows)), width)
        if marks.diagonal is not None:
            place = shape.place(len(view.rows), marks.diagonal)
            after = place + 2 + len(DROPS) <= width
            text = f"{' ' * place}↓ {DROPS}" if after else f"{DROPS} ↓".rjust(place + 1)
            return [[(text, Style(bold=True))], self._origin(width)]
        coloured = any(
            self._came_true(row + column, token) is not None
            for row, ids in enumerate(view.row_ids)
            for column, token in enumerate(ids)
        )
        right = f"{self.palette.marked}: the right token" if coloured else ""
        return [self.legend(_legends(shape.shifted, self._is_block, right), more, width), self._origin(width)]

    def _grid(self, view: protocol.WindowView, shape: Shape, marks: Marks, room: int) -> list[Row]:
        """Return the newest rows, as many as `room` allows, below the positions of the columns if a line is left."""
        ages = len(view.rows)
        first = max(0, ages + 1 - room)
        rows: list[Row] = []
        if room > ages + 1:
            columns = range(shape.first, shape.first + shape.columns)
            positions = "".join(" " + fit(f"+{column}", shape.cells) for column in columns)
            rows.append([(fit("at" if shape.shifted else "from", LABEL_CELLS), self.muted), (positions, self.muted)])
        self._grid_at = (1 + len(rows), first, shape)
        for index in range(first, ages + 1):
            age = ages - index
            label = "new" if not age else f"…−{age}" if index == first and first else f"−{age}"
            rows.append([(fit(f"{label:>3}", LABEL_CELLS), self.muted), *self._cells(view, index, shape, marks)])
        return rows

    def _cells(self, view: protocol.WindowView, index: int, shape: Shape, marks: Marks) -> Row:
        """Return the tokens of a row; the last row is the fresh one."""
        pieces, ids = row_of(view, index)
        age = len(view.rows) - index
        quiet, faded = self.muted, self.faded_text(OLDEST_FADED * age / len(view.rows))
        shown = shape.visible(index, len(pieces))
        row: Row = []
        if shown:
            row.append((" " * (shape.place(index, shown[0]) - LABEL_CELLS - 1), Style()))
        for column in shown:
            came_true = self._came_true(index + column, ids[column]) if age else None
            style = came_true or faded
            if marks.any:
                lit = marks.lit(index, column)
                style = quiet if not lit else (came_true or Style()) + Style(reverse=lit > 1, bold=lit == 1)
            mark, same = marks.signs[index][column][:1], marks.signs[index][column][1:]
            sign = quiet if same or mark in f"{SAME} " else self.palette.verdict(marks.verdict(index, column))
            # The next cell's mark stands in the gap between both: after a full cell these two look like text.
            gap = " " * (column != shown[-1] and marks.signs[index][column + 1][0] in f"{SAME}{NOT_REACHED}")
            cells = shape.cells - len(same + gap)
            row += [(mark, sign), (same, quiet), *self.cell(pieces[column], cells, style), (gap, Style())]
        return row

    def _came_true(self, position: int, token: int) -> Style | None:
        """Return the style of the step if it emitted this token at this position, else None."""
        step = self._step
        if step is None or not 0 < position <= len(step.token_ids) or step.token_ids[position - 1] != token:
            return None
        return self.step_style(step, position - 1)

    def _origin_of_accepted(self, step: protocol.Step) -> PaidOff | None:
        """Return where a step's accepted drafts were formed, if they came from an earlier window."""
        if step.draft is None or step.window is None or not step.window.row_ids[:1]:
            return None
        draft = step.draft
        accepted = [i for i, found in enumerate(draft.verdicts) if found == "accepted" and draft.sources[i] == WINDOW]
        ids = tuple(draft.token_ids[i] for i in accepted)
        birth = self._births.of((step.window.row_ids[0][0], *ids), step.index) if ids else None
        if birth is None:
            return None
        return PaidOff([draft.pieces[i] for i in accepted], birth, step.index, len(step.token_ids))

    def _origin(self, width: int) -> Row:
        """Return the row about the latest drafts that came true."""
        paid_off = self._paid_off
        if paid_off is None or self._step is None or paid_off.step > self._step.index:  # may be an earlier pass
            return []
        born, now = paid_off.birth.step + 1, paid_off.step == self._step.index
        place, where = f"+{paid_off.birth.ahead}", f"pass {born}"
        after = f" guessed in {where} at {place}, accepted {'now' if now else f'in {paid_off.step + 1}'}"
        if len(after) + LEAST_OF_ORIGIN > width:
            after = f" {where} at {place}, {'now' if now else f'→ {paid_off.step + 1}'}"
        text = shorten(" ".join(visible(piece) for piece in paid_off.pieces), max(width - len(after) - 2, 1))
        style = self.palette.style_of_step(paid_off.step, paid_off.accepted)
        return [("‹", self.muted), *self.token(text, style), ("›" + after, self.muted)]


def _legends(shifted: bool, block: bool, right: str) -> tuple[str, ...]:
    same = "= as in a row above"
    also = f" · {right}" if right else ""
    if block:
        return (f"{same}{also}", same, right or same)
    along = f"along {'↘' if shifted else '↓'}: an n-gram"
    return (f"{along} · {same}{also}", f"{along} · {same}", f"{along} · = as above", along)
