"""The attention mask of one pass: which slots attend to which, as in the method's figure, but of the pass just run."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

from rich.style import Style
from textual import events
from textual.reactive import reactive

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.cells import fit, visible
from ladechat.widgets.formatting import counted
from ladechat.widgets.panels.panel import FEW_ROWS, LEAST_ROWS, ROWS_AT_ONCE, Needs, Panel, Row, StepPanel, longest
from ladechat.widgets.steps.draft_tree import Slot, mask_of, sight, slots_of

SEEN, UNSEEN = "■", "·"
HALVES = " ▐▌█"
"""Two columns of the mask in one character: neither slot is seen, the right one, the left one, both."""
SEES = (
    "the slot of this line sees that of the column",
    "the line's slot sees the column's",
    "the line's sees the column's",
)
NAME_CELLS = 9
TOKEN_CELLS, LEAST_TOKEN_CELLS = 9, 6
WIDE = 48
"""Minimum width, in cells, at which tokens have `TOKEN_CELLS`."""
LAST_CELLS = 5
FRAME_ROWS = 4
"""Rows without those of the slots: header, heads of the columns, two notes."""
LINES_A_NOTCH = 3
"""Lines that a notch of the mouse wheel scrolls."""
UNSEEN_FADED, OTHERS_FADED = 0.7, 0.45
LAST, GUESSES, PSEUDO = "last", "guesses", "pseudo"


class Line(NamedTuple):
    """A line of the picture: a slot, a pseudo state, or the heading of a block.

    Attributes:
        name: the row of the window or the guess, where it begins; or the heading.
        slot: the index of the slot; None for a heading.
        ahead: for a pseudo state, the number of tokens ahead that it guesses; 0 for a slot.
    """

    name: str
    slot: int | None = None
    ahead: int = 0


class Block(NamedTuple):
    """Columns that belong together.

    Attributes:
        name: the heading.
        slots: the indices of their slots, or of pseudo states.
        pseudo: whether these are pseudo states.
    """

    name: str
    slots: Sequence[int]
    pseudo: bool = False


class Scale(IntEnum):
    """The half cells of a column."""

    DOUBLE = 4
    SINGLE = 2
    HALF = 1

    def cells(self, block: Block) -> int:
        return LAST_CELLS if block.name == LAST else -(-len(block.slots) * self // 2)

    def drawn(self, block: Block, seen: Sequence[bool], style: Style, unseen: Style) -> Row:
        """Return a line's cells of a block: which of its slots are seen."""
        cells = self.cells(block)
        if self is Scale.HALF and block.name != LAST:
            pairs = [seen[i : i + 2] for i in range(0, len(seen), 2)]
            signs = "".join(HALVES[2 * pair[0] + (len(pair) > 1 and pair[1])] for pair in pairs)
            return [(signs.ljust(cells), style)]
        gap = " " * (self is Scale.DOUBLE)
        row: Row = [
            (((SEEN if one else UNSEEN) + gap) * len(list(alike)), style if one else unseen)
            for one, alike in groupby(seen)
        ]
        return [*row, (" " * (cells - (1 + len(gap)) * len(seen)), Style())]


class MaskPanel(StepPanel):
    """A line for each slot that asks, a column for each slot that is seen, in blocks with names.

    What does not fit scrolls: with the mouse wheel, or with the selected slot. Accepted tokens have the colour of the
    step. With hidden transfer, the pseudo states of one slot are drawn below, see `carriers`.
    """

    NAME = "attention mask"
    SHOWS = "Which slots of the pass see which: each only what it follows."
    COMES = "F10 shows it first; where there is room, it stands beside the drafts."
    NEEDS = Needs(LEAST_ROWS, FEW_ROWS, FEW_ROWS)

    slot: reactive[int | None] = reactive(None)
    """The index of the slot of which is shown what it sees; None for all."""
    beside: reactive[Panel | None] = reactive(None, layout=True)
    """The panel at whose right it stands; None: it has a place of its own."""
    carriers = 0
    """How many slots of a pass carry pseudo states, by the settings of the step that is shown; 0 if that is unknown."""

    def forget(self) -> None:
        super().forget()
        self._most, self._top, self._states = 1, 0, 0

    def show_step(self, step: protocol.Step) -> None:
        super().show_step(step)
        self._most = max(self._most, step.timing.slots)
        if step.lens is not None:
            self._states = len(step.lens.row_ids[-1])

    def count(self, step: protocol.Step) -> None:
        """Count the rows that the next step needs: its slots, pseudo states, and headings."""
        states = 0 if step.lens is None else len(step.lens.row_ids[-1]) + 1
        branches = 2 * (step.window is not None and step.pool is not None)
        self.count_rows(FRAME_ROWS + step.timing.slots + branches + states, ROWS_AT_ONCE)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll(LINES_A_NOTCH)
        event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(-LINES_A_NOTCH)
        event.stop()

    def _scroll(self, lines: int) -> None:
        self._top = max(self._top + lines, 0)
        self.refresh()

    # --- in words -----------------------------------------------------------------------------------------------------

    def explain(self) -> str:
        step = self._step
        if step is None:
            return "Shows which slots of a pass see which, from the first pass on."
        slots = slots_of(step)
        cached = f"{step.timing.cache_length:,} tokens of the text before"
        if len(slots) == 1:
            return f"One slot, the last token, which sees itself and the {cached}: there is nothing else in this pass."
        window = sum(slot.row is not None for slot in slots)
        parts = ["the last token"]
        if window:
            parts.append(f"{window} in the window" + (", the lookahead branch" if step.pool is not None else ""))
        if drafts := len(slots) - 1 - window:
            parts.append(f"{counted(drafts, 'draft')} in guesses" + (", the verification branch" if window else ""))
        text = (
            f"{counted(len(slots), 'slot')} went through the model at once: {'; '.join(parts)}. Each sees itself, what "
            f"it follows, and the {cached}, but no other guess. So each got the answer that it would get alone. What "
            "was not accepted leaves the KV cache."
        )
        if self._pseudo(step, slots) is not None:
            carried = min(self.carriers, len(slots))
            text += (
                f" {counted(carried, 'slot')} also carried {counted(self._states, 'pseudo state')} each through the "
                "upper layers; those of one slot are drawn. A later one sees the earlier ones."
            )
        return text

    # --- drawing ------------------------------------------------------------------------------------------------------

    def needs(self) -> Needs:
        return super().needs() if self.beside is None else super().needs()._replace(usual=LEAST_ROWS)

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles("attention mask of this pass", "attention mask", "mask")
        step = self._step
        if step is None:
            return self.only(width, titles, "Fills with the first pass.")
        slots = slots_of(step)
        if len(slots) == 1:
            return [self.header(width, titles, ["1 slot", ""]), *self.sentence(self.explain(), width)]
        selected = self.slot if self.slot is not None and self.slot < len(slots) else None
        notes = self._notes(step, slots, selected, width)[: max(0, height - 5)]
        lines = self._lines(step, slots)
        room = max(height - 2 - len(notes), 1)
        self._top = _top(lines, self._top, room, selected)
        shown = lines[self._top : self._top + room]
        above = sum(line.slot is not None for line in lines[: self._top])
        below = sum(line.slot is not None for line in lines[self._top + room :])
        more = " ".join([f"↑{above}"] * bool(above) + [f"↓{below}"] * bool(below))
        size = counted(step.timing.slots, "slot")
        header = self.header(width, titles, [f"{size} · {more} more", more] if more else [_size(step, slots), size, ""])
        return [header, *self._picture(step, slots, shown, selected, width), *notes]

    def _lines(self, step: protocol.Step, slots: Sequence[Slot]) -> list[Line]:
        """Return the lines of the whole picture: the last token, the window, the guesses, pseudo states."""
        lines = [Line(LAST, 0)]
        both = step.window is not None and step.pool is not None
        order = _order(slots)
        for in_window, part in groupby(order[1:], lambda index: slots[index].row is not None):
            if both:
                lines.append(Line("lookahead branch" if in_window else "verification branch"))
            before: object = None
            for index in part:
                lines.append(Line("" if slots[index].group == before else _name(step, slots[index]), index))
                before = slots[index].group
        carrier = self._pseudo(step, slots)
        if carrier is not None:
            whose = visible(slots[carrier].piece) if carrier else "the last token"
            lines.append(Line(f"pseudo states of ‹{whose}›"))
            lines += [Line(PSEUDO if not state else "", carrier, state + 2) for state in range(self._states)]
        return lines

    def _pseudo(self, step: protocol.Step, slots: Sequence[Slot]) -> int | None:
        """Return the slot whose pseudo states are drawn: the selected one, or the last accepted one, which made the
        guesses for the next pass. None if it carried none, or if that is unknown.
        """
        if not self._states or not self.carriers:
            return None
        last = max((index for index, slot in enumerate(slots) if slot.verdict == "accepted"), default=0)
        carrier = last if self.slot is None or self.slot >= len(slots) else self.slot
        return carrier if carrier < self.carriers else None

    def _picture(
        self, step: protocol.Step, slots: Sequence[Slot], shown: Sequence[Line], selected: int | None, width: int
    ) -> list[Row]:
        """Return the heads of the columns, and the lines."""
        mask, quiet, unseen = mask_of(slots), self.muted, self.faded(UNSEEN_FADED)
        label = _label_cells(width)
        token = label - NAME_CELLS - 2
        blocks = self._blocks(step, slots)
        scale = self._scale(len(blocks), width - label)
        blocks = _fitting(blocks, scale, mask, shown, width - label)
        heads: Row = [(" " * label, Style())]
        left = width - label
        for block in blocks:
            cells = scale.cells(block)
            room = left - 1 if block is blocks[-1] else cells
            heads.append((" " + longest(room, _heads(block.name)).ljust(cells), quiet))
            left -= 1 + cells
        rows = [heads]
        for line in shown:
            if line.slot is None:
                rows.append([(f"── {line.name} ".ljust(label, "─") + "─" * (width - label), quiet)])
                continue
            style = self._style(step, slots[line.slot], line, selected)
            row = self._label(line, slots[line.slot], token, style, selected)
            for block in blocks:
                seen = [line.ahead - 2 >= i if block.pseudo else bool(mask[line.slot] >> i & 1) for i in block.slots]
                row.append((" " if block is blocks[0] else "│", quiet))
                row += scale.drawn(block, seen, style, unseen)
            rows.append(row)
        return rows

    def _scale(self, borders: int, room: int) -> Scale:
        """Return the largest scale at which the answer's largest pass so far fits: it changes as rarely as possible."""
        most = self._most - 1 + self._states
        return next((one for one in Scale if LAST_CELLS + most * one / 2 + borders <= room), Scale.HALF)

    def _blocks(self, step: protocol.Step, slots: Sequence[Slot]) -> list[Block]:
        order = _order(slots)
        rows = groupby((index for index in order[1:]), lambda index: slots[index].row)
        blocks = [Block(LAST, [0])]
        for row, members in rows:
            indices = list(members)
            blocks.append(Block(GUESSES if row is None else _name(step, slots[indices[0]]), indices))
        if self._pseudo(step, slots) is not None:
            blocks.append(Block(PSEUDO, range(self._states), pseudo=True))
        return blocks

    def _label(self, line: Line, slot: Slot, token: int, style: Style, selected: int | None) -> Row:
        """Return the beginning of a line: the group where it begins, the verdict, and the token."""
        piece = f"t+{line.ahead}" if line.ahead else visible(slot.piece) if slot.piece else ""
        mark = VERDICT_MARKS[slot.verdict] if slot.verdict and not line.ahead else " "
        if selected == line.slot and not line.ahead:
            style = style + Style(reverse=True)
        return [
            (fit(line.name, NAME_CELLS), self.muted),
            (mark, self.palette.verdict(slot.verdict or "")),
            *self.cell(piece, token, style),
            (" ", Style()),
        ]

    def _style(self, step: protocol.Step, slot: Slot, line: Line, selected: int | None) -> Style:
        """Return the style of what a slot sees: the step's if it was accepted; quiet if another slot is selected."""
        if selected is not None and selected != line.slot:
            return self.faded_text(OTHERS_FADED)
        if slot.verdict == "accepted":
            return self.palette.style_of_step(step.index, len(step.token_ids))
        return Style(bold=selected is not None)

    def _notes(self, step: protocol.Step, slots: Sequence[Slot], selected: int | None, width: int) -> list[Row]:
        if selected is not None:
            return self.sentence(sight(slots, selected, len(step.window.rows) if step.window else 0), width)
        cached = f"{step.timing.cache_length:,}"
        scale = self._scale(len(self._blocks(step, slots)), width - _label_cells(width))
        signs = SEEN + HALVES.strip() if scale is Scale.HALF else SEEN
        texts: list[Iterable[str]] = [
            [f"{signs} {text}" for text in SEES],
            (f"and all see the {cached} tokens of the text before", f"+ {cached} tokens before"),
        ]
        if (missing := step.timing.slots - len(slots)) > 0:
            texts.insert(0, (f"{missing} of the slots are not named in this recording", f"{missing} are not named"))
        return [[(longest(width, list(each)), self.muted)] for each in texts]


def _label_cells(width: int) -> int:
    """Return the cells of the beginning of a line, in a panel of this width."""
    return NAME_CELLS + (TOKEN_CELLS if width >= WIDE else LEAST_TOKEN_CELLS) + 2


def _fitting(blocks: list[Block], scale: Scale, mask: Sequence[int], shown: Sequence[Line], room: int) -> list[Block]:
    """Return the blocks, without columns that no visible line sees if not all fit."""
    if sum(1 + scale.cells(block) for block in blocks) <= room:
        return blocks
    used = 0
    for line in shown:
        used |= 0 if line.slot is None else mask[line.slot]
    return [one if one.pseudo else one._replace(slots=[i for i in one.slots if used >> i & 1]) for one in blocks]


def _order(slots: Sequence[Slot]) -> list[int]:
    """Return the slots in the order of the picture: those of a guess together, guesses by number."""
    return sorted(range(len(slots)), key=lambda index: (index > 0, slots[index].row is None, slots[index].guess, index))


def _top(lines: Sequence[Line], top: int, room: int, selected: int | None) -> int:
    """Return the first visible line: as near to `top` as is possible with the selected slot in view."""
    top = max(0, min(top, len(lines) - room))
    if selected is None:
        return top
    at = next((place for place, line in enumerate(lines) if line.slot == selected and not line.ahead), top)
    return min(max(top, at - room + 1), at)


def _name(step: protocol.Step, slot: Slot) -> str:
    """Return the name of a slot's group: a guess by its number, a row of the window as in its panel."""
    if slot.row is None or step.window is None:
        return f"guess {slot.guess}" if slot.guess else ""
    return f"row −{len(step.window.rows) - slot.row}"


def _heads(name: str) -> tuple[str, ...]:
    """Return the head over a block's columns, from long to short: a row without its word, one letter for guesses."""
    return (name, "guess", "G") if name == GUESSES else (name, name.removeprefix("row "))


def _size(step: protocol.Step, slots: Sequence[Slot]) -> str:
    """Return the number of slots as a sum: the last token, the window, the guesses."""
    window = sum(slot.row is not None for slot in slots)
    parts = [1, *[window] * bool(window), *[len(slots) - 1 - window] * (len(slots) - 1 > window)]
    return f"{counted(step.timing.slots, 'slot')} = {' + '.join(map(str, parts))}"
