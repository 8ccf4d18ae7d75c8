"""The pseudo states of hidden transfer: the argmax token of each at each layer, to show how guesses settle."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from textual.message import Message

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import fit, shorten, visible
from ladechat.widgets.panels.panel import Row, StepPanel
from ladechat.widgets.steps.explained import format_explained
from ladechat.widgets.steps.token_history import settled_at

LABEL = "layer"
MIN_COLUMN_CELLS, MAX_COLUMN_CELLS = 5, 14
MAX_AFTER_CELLS = 14
UNSETTLED_FADED = 0.33
"""How far a token fades that differs from the top layer's guess. More would be hard to read on some backgrounds."""
SETTLED = "│"


class LensPanel(StepPanel):
    """A column for each position ahead, a row for each layer; the last layer, which makes the guess, is at the top.

    A bar marks tokens equal to the one at the top, so it reaches down to the layer at which the guess settled. The head
    of each column shows whether the guess came true; a token that the step then emitted has the colour of the step.
    """

    NAME = "pseudo states"
    SHOWS = "Hidden transfer: what each guess reads at every layer; the last one counts."
    COMES = "It comes with hidden transfer."

    @dataclass
    class Seen(Message):
        """The panel has become visible or invisible; its data is computed only while it is visible."""

        shown: bool

    def on_show(self) -> None:
        self.post_message(self.Seen(True))

    def on_hide(self) -> None:
        self.post_message(self.Seen(False))

    def explain(self) -> str:
        """Return which token each layer has, and which guesses came true."""
        view = None if self._step is None else self._step.lens
        if self._step is None or view is None:
            return self._why_none(self._step)
        top = view.row_ids[-1]
        right = sum(_verdict(self._step, column, token) == "accepted" for column, token in enumerate(top))
        settled = ", ".join(str(settled_at(view, *place)) for place in enumerate(top))
        text = (
            f"t+1 is the token that the pass before wrote, ‹{visible(view.after)}›. That pass also guessed at t+2 to "
            f"t+{len(top) + 1}, the {len(top)} tokens behind it: a column each. Half-way up the model, at layer "
            f"{view.layers[0]}, trained maps made a state for each, which went on through the layers. Read a column "
            f"from the bottom up: the likeliest token after each layer, and on top, after layer {view.layers[-1]}, the "
            f"guess. {SETTLED} marks layers that have the guess already: from layer {settled} on, column by column. "
            f"{right} of {len(top)} guesses came true (✓)."
        )
        return " ".join(filter(None, [text, format_explained([piece for row in view.rows for piece in row])]))

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles("pseudo states, layer by layer", "pseudo states")
        step = self._step
        view = None if step is None else step.lens
        if step is None or view is None:
            return self.only(width, titles, self._why_none(step))
        legend = height >= len(view.rows) + 3
        shown = spread(len(view.rows), max(height - 2 - legend, 0))
        columns, cells = _columns(len(view.rows[-1]), width - len(LABEL))
        left_out = [(len(view.rows) - len(shown), "layers"), (len(view.rows[-1]) - columns, "columns")]
        more = ", ".join(f"+{count} {what}" for count, what in left_out if count > 0)
        after = f"t+1 is ‹{shorten(visible(view.after), MAX_AFTER_CELLS)}›"
        header = self.header(width, titles, [f"{after} · {more}", after, ""] if more and not legend else [after, ""])
        grid = [self._layer(step, view, index, columns, cells) for index in reversed(shown)]
        texts = (
            f"bottom up: the likeliest token after each layer · {SETTLED} the guess already · marked: came true",
            f"from the bottom up · {SETTLED} the guess already · marked: came true",
            f"{SETTLED} the guess already · marked: came true",
            f"{SETTLED} the guess already",
        )
        footer = [self.legend(texts, more, width)] if legend else []
        return [header, self._positions(step, view, columns, cells), *grid, *footer]

    def _why_none(self, step: protocol.Step | None) -> str:
        if self.awaits_answer:
            return "Fills with the next answer: the last one was not decoded by hidden transfer."
        if step is None or (step.index == 0 and step.draft is not None):
            return "Fills with the second pass of an answer."
        if step.draft is None:
            return "Plain decoding: no pseudo states."
        return "None for this pass: its last token carried no pseudo rows, or nobody looked at them."

    def _positions(self, step: protocol.Step, view: protocol.LensView, columns: int, cells: int) -> Row:
        """Return the heads of the columns: position, and verdict on the guess."""
        row: Row = [(LABEL, self.muted)]
        for column, guess in enumerate(view.row_ids[-1][:columns]):
            verdict = _verdict(step, column, guess)
            position = f"t+{column + 2}"
            rest = max(cells - len(position), 0)
            row += [(f"  {position}"[: cells + 2], self.muted)]
            row += [(fit(f" {VERDICT_MARKS[verdict]}", rest), self.palette.verdict(verdict))]
        return row

    def _layer(self, step: protocol.Step, view: protocol.LensView, index: int, columns: int, cells: int) -> Row:
        """Return the row of one layer: its token at each position."""
        row: Row = [(shorten(str(view.layers[index]), len(LABEL)).rjust(len(LABEL)), self.muted)]
        top = view.row_ids[-1]
        for column, token in enumerate(view.row_ids[index][:columns]):
            settled = token == top[column]
            style = Style() if settled else self.faded_text(UNSETTLED_FADED)
            if _verdict(step, column, token) == "accepted":
                style = self.step_style(step, column)
            row += [(f" {SETTLED if settled else ' '}", self.muted), *self.cell(view.rows[index][column], cells, style)]
        return row


def spread(count: int, most: int) -> Sequence[int]:
    """Return at most `most` of `count` indices, evenly spaced with the first and the last; of one, the last."""
    if most >= count:
        return range(count)
    return [round(place * (count - 1) / (most - 1)) for place in range(most)] if most > 1 else [count - 1][:most]


def _columns(positions: int, room: int) -> tuple[int, int]:
    """Return how many of `positions` columns fit into `room` cells, and the cells that each has for its token."""
    columns = max(1, min(positions, room // (MIN_COLUMN_CELLS + 2)))
    return columns, max(1, min(MAX_COLUMN_CELLS, room // columns - 2))


def _verdict(step: protocol.Step, column: int, token: int) -> protocol.Verdict:
    """Return whether the step emitted this token at the column's position; `untested` if it emitted too few tokens."""
    if column >= len(step.token_ids):
        return "untested"
    return "accepted" if step.token_ids[column] == token else "rejected"
