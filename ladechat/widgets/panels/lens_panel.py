"""The pseudo states of hidden transfer: the argmax token of each at each layer, to show how guesses settle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.style import Style
from textual.message import Message
from textual.reactive import reactive

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import fit, shorten, visible
from ladechat.widgets.formatting import counted
from ladechat.widgets.panels.panel import LEAST_ROWS, Needs, Row, Span, StepPanel, longest
from ladechat.widgets.panels.transfer_picture import TRANSFER, TransferPicture, part_of
from ladechat.widgets.steps.explained import format_explained
from ladechat.widgets.steps.guesses import verdicts_at
from ladechat.widgets.steps.token_history import settled_at

LABEL, MODEL, MAPS = "layer", "model", " maps"
MIN_COLUMN_CELLS, MAX_COLUMN_CELLS = 5, 14
MAX_AFTER_CELLS = 14
CELLS_FOR_REAL = 44
"""Minimum width for a column of the real state beside the pseudo states."""
BETWEEN = (
    "─ ↑ checked by this pass ─ ↓ guessed by the pass before ",
    "─ ↑ checked now ─ ↓ guessed by the pass before ",
    "─ ↑ now ─ ↓ the pass before ",
    "─",
)
UNSETTLED_FADED = 0.33
"""How far a token fades that differs from the top layer's guess. More would be hard to read on some backgrounds."""
SETTLED = "│"
LEGENDS = (
    f"{SETTLED} from here up the guess stays the same · {{}}: accepted",
    f"{SETTLED} the guess stays the same · {{}}: accepted",
    f"{SETTLED} the guess stays the same",
)
FRAME_ROWS = 6
"""Rows without those of the layers: header, positions, the model's answer, a rule, the maps, and the legend."""
WORDS_ROWS = 7


class LensPanel(StepPanel):
    """A column for each position ahead, a row for each layer; the last layer, which makes the guess, is at the top.

    A bar marks tokens equal to the one at the top, so it reaches down to the layer at which the guess settled. The one
    at the top has the verdict on it in place of the bar, if it was drafted. Above the layers, which are of the pass
    before, stands what this pass says, marked where it accepted another draft than the one at the top. Accepted drafts
    have the colour of the step. The state of the real token is the first column, and the maps, which make the pseudo
    states from it, are the lowest row.

    Until there are pseudo states, a picture of the method is shown.
    """

    NAME = "pseudo states"
    SHOWS = "Hidden transfer: what each guess reads at every layer; the top one is checked by the next pass."
    COMES = "It comes with hidden transfer."

    layer_rows: reactive[int] = reactive(4, layout=True)
    """The number of layers that there is to be room for."""
    _picture: reactive[TransferPicture | None] = reactive(None, layout=True)

    @dataclass
    class Seen(Message):
        """The panel has become visible or invisible; its data is computed only while it is visible."""

        shown: bool

    def needs(self) -> Needs:
        rows = self.layer_rows + FRAME_ROWS
        return Needs(LEAST_ROWS, rows, rows + WORDS_ROWS * bool(self._picture))

    def show_model(self, layers: int, trained: Sequence[protocol.TrainedPart]) -> None:
        """Draw the method for a model with so many layers, and what was trained for it."""
        part = part_of(trained, TRANSFER)
        self._picture = TransferPicture(layers, part) if part is not None and part.layers else None

    def on_show(self) -> None:
        self.post_message(self.Seen(True))

    def on_hide(self) -> None:
        self.post_message(self.Seen(False))

    def explain(self) -> str:
        view = None if self._step is None else self._step.lens
        if self._step is None or view is None:
            return self._why_none(self._step)
        top = view.row_ids[-1]
        right = _accepted(self._step)
        settled = ", ".join(str(settled_at(view, *place)) for place in enumerate(top))
        text = (
            f"‹{visible(view.after)}› (t+1) came from the pass before, which also guessed t+2 to t+{len(top) + 1}, a "
            f"column each. At layer {view.layers[0]} trained maps made a state for each from the real one; these rose "
            "through the layers. A column from the bottom up: the likeliest token after each layer; on top, after "
            f"layer {view.layers[-1]}, the likeliest guess. From the layers {settled} up it stays the same "
            f"({SETTLED}). This pass has checked the likeliest few of each place, a tree: "
            f"{counted(right, 'draft')} accepted (✓). The text stays exact, as in lookahead decoding."
        )
        words = self._picture.words() if self._picture else []
        return " ".join(filter(None, [text, *words, format_explained([piece for row in view.rows for piece in row])]))

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles("pseudo states, layer by layer", "pseudo states")
        step = self._step
        view = None if step is None else step.lens
        if step is None or view is None:
            return self._without_states(width, height, titles)
        room = _Room.of(height, len(view.rows))
        shown = spread(len(view.rows), room.layers)
        real = width >= CELLS_FOR_REAL
        columns, cells = _columns(len(view.row_ids[-1]) + real, width - len(LABEL))
        columns -= real
        left_out = [(len(view.rows) - len(shown), "layers"), (len(view.rows[-1]) - columns, "columns")]
        more = ", ".join(f"+{count} {what}" for count, what in left_out if count > 0)
        after = "" if real else f"t+1 is ‹{shorten(visible(view.after), MAX_AFTER_CELLS)}›"
        facts = [" · ".join(filter(None, (after, more)))] if more and not room.legend else []
        header = self.header(width, titles, [*facts, after, ""])
        frame = _Frame(step, view, columns, cells, real)
        rows = [header, self._positions(frame)]
        if room.said:
            rows.append(self._said(frame))
        if room.between:
            words = longest(width, BETWEEN)
            rows.append([(words + "─" * (width - len(words)), self.muted)])
        rows += [self._layer(frame, index) for index in reversed(shown)]
        if room.maps and real and columns:
            rows.append([(MAPS, self.muted), (_bus(columns, cells), Style())])
        if room.legend:
            rows.append(self.legend([text.format(self.palette.marked) for text in LEGENDS], more, width))
        left = height - len(rows) - 1
        return [*rows, [], *self._picture.described(width, left, self.muted)] if self._picture and left > 0 else rows

    def _without_states(self, width: int, height: int, titles: tuple[str, ...]) -> list[Row]:
        """Return the picture of the method, or a sentence that says why there is nothing else."""
        why = self._why_none(self._step)
        plain = self._step is not None and self._step.draft is None
        if self._picture is None or plain or height < LEAST_ROWS:
            return self.only(width, titles, why)
        rows = self._picture.rows(width, height - 1, Style(), self.muted)
        return [self.header(width, ("hidden transfer", *titles), [""]), *rows]

    def _why_none(self, step: protocol.Step | None) -> str:
        if self.awaits_answer:
            return "Fills with the next answer: the last one was not decoded by hidden transfer."
        if step is None or (step.index == 0 and step.draft is not None):
            return "Fills with the second pass of an answer."
        if step.draft is None:
            return "Plain decoding: no pseudo states."
        return "None for this pass: its last token carried no pseudo rows, or nobody looked at them."

    def _positions(self, frame: "_Frame") -> Row:
        row: Row = [(LABEL, self.muted)]
        if frame.real:
            row += [(f"  {fit('t+1', frame.cells)}", self.muted)]
        row += [(f"  {fit(f't+{column + 2}', frame.cells)}", self.muted) for column in range(frame.columns)]
        return row

    def _said(self, frame: "_Frame") -> Row:
        """Return the tokens at these positions, as far as the model has said them with this pass."""
        row: Row = [(MODEL, self.muted)]
        if frame.real:
            row += [("  ", self.muted), *self.cell(frame.view.after, frame.cells, Style())]
        accepted, top = _accepted(frame.step), frame.view.row_ids[-1]
        for column, piece in enumerate(frame.step.pieces[: frame.columns]):
            drafted = column < accepted
            style = self.step_style(frame.step, column) if drafted else Style()
            other = drafted and frame.step.token_ids[column : column + 1] != top[column : column + 1]
            mark = self._mark("accepted" if other else None, " ")
            row += [(" ", Style()), mark, *self.cell(piece, frame.cells, style)]
        return row

    def _mark(self, verdict: protocol.Verdict | None, otherwise: str) -> Span:
        """Return the mark of a verdict, or what stands in its place."""
        return (VERDICT_MARKS[verdict], self.palette.verdict(verdict)) if verdict else (otherwise, self.muted)

    def _layer(self, frame: "_Frame", index: int) -> Row:
        step, view = frame.step, frame.view
        top = view.row_ids[-1]
        accepted, highest = _accepted(step), index == len(view.rows) - 1
        verdicts = verdicts_at(step.draft, top) if highest else [None] * len(top)
        row: Row = [(shorten(str(view.layers[index]), len(LABEL)).rjust(len(LABEL)), self.muted)]
        if frame.real and highest:
            row += [("  ", self.muted), *self.cell(view.after, frame.cells, Style())]
        elif frame.real:
            row += [(f"  {fit('│', frame.cells)}", self.muted)]
        for column, token in enumerate(view.row_ids[index][: frame.columns]):
            settled = token == top[column]
            style = Style() if settled else self.faded_text(UNSETTLED_FADED)
            if column < accepted and step.token_ids[column : column + 1] == [token]:
                style = self.step_style(step, column)
            mark = self._mark(verdicts[column], SETTLED if settled else " ")
            row += [(" ", Style()), mark, *self.cell(view.rows[index][column], frame.cells, style)]
        return row


class _Frame(NamedTuple):
    """What is drawn of a step: so many columns of pseudo states, `cells` wide, beside one of the real state or not."""

    step: protocol.Step
    view: protocol.LensView
    columns: int
    cells: int
    real: bool


class _Room(NamedTuple):
    """Which rows there is room for below header and positions, the most telling first."""

    said: bool
    layers: int
    maps: bool
    between: bool
    legend: bool

    @classmethod
    def of(cls, height: int, layers: int) -> "_Room":
        """Return what fits into `height` rows if the states have so many layers."""
        left = max(height - 2, 0)
        said = left > 2
        shown = min(layers, left - said)
        left -= said + shown
        return cls(said, shown, left > 0, left > 1, left > 2)


def _accepted(step: protocol.Step) -> int:
    """Return how many drafts of a step were accepted: its first tokens, along one branch of the tree."""
    return 0 if step.draft is None else step.draft.verdicts.count("accepted")


def _bus(columns: int, cells: int) -> str:
    """Return the maps: each leads from the real state to the foot of its column."""
    line = "  [t]".ljust(columns * (cells + 2) + 2, "─")
    for column in range(1, columns + 1):
        foot = column * (cells + 2) + 2
        line = f"{line[: foot - 3]}M{column}".ljust(foot, "─") + ("┴" if column < columns else "┘") + line[foot + 1 :]
    return line


def spread(count: int, most: int) -> Sequence[int]:
    """Return at most `most` of `count` indices, evenly spaced with the first and the last; of one, the last."""
    if most >= count:
        return range(count)
    return [round(place * (count - 1) / (most - 1)) for place in range(most)] if most > 1 else [count - 1][:most]


def _columns(positions: int, room: int) -> tuple[int, int]:
    """Return how many of `positions` columns fit into `room` cells, and the cells that each has for its token."""
    columns = max(1, min(positions, room // (MIN_COLUMN_CELLS + 2)))
    return columns, max(1, min(MAX_COLUMN_CELLS, room // columns - 2))
