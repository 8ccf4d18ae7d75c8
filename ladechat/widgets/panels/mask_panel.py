"""The attention mask of one pass: which slots attend to which, as in the method's figure, but of the pass just run."""

from rich.color import Color
from rich.style import Style

from ladechat import protocol
from ladechat.widgets.cells import cell_len, shorten, visible
from ladechat.widgets.formatting import counted
from ladechat.widgets.panels.panel import Row, StepPanel, longest
from ladechat.widgets.steps.draft_tree import LAST, Slot, branches_of, mask_of, slots_of

UPPER_HALF = "▀"
UNSEEN_FADED = 0.9
WINDOW_FADED = 0.55
BRANCHES_FADED = (0.15, 0.4)
"""Branches alternate between two shades, so that neighbours differ; the colour of the step marks accepted tokens."""
LABEL_GAP = 2
MIN_LABEL_CELLS = 12
TOKEN_CELLS = 12


class MaskPanel(StepPanel):
    """A row for each query slot, a column for each key slot.

    Two slots share a line of the screen, unless there is room for all passes of the answer with one slot per line.
    Beside each line are the names of its slots. Accepted tokens have the colour of the step.
    """

    NAME = "attention mask"
    SHOWS = "Which slots of the pass see which: each its own branch alone."
    COMES = "F10 shows it alone; where there is room, it stands beside the drafts."

    def forget(self) -> None:
        super().forget()
        self._most = 1

    def show_step(self, step: protocol.Step) -> None:
        super().show_step(step)
        self._most = max(self._most, step.timing.slots)

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles("attention mask of this pass", "attention mask", "mask")
        step = self._step
        if step is None:
            return self.only(width, titles, "Fills with the first pass.")
        slots = slots_of(step)
        header = self.header(width, titles, [_size(step, slots), f"{step.timing.slots} slots", ""])
        if len(slots) == 1:
            return [header, *self.sentence(self.explain(), width)]
        accepted = "in colour" if self.palette.colour else "strongest"
        notes: list[Row] = [[(longest(width, texts), self.muted)] for texts in _notes(step, len(slots), accepted)]
        notes = notes[: max(0, height - 4)]
        room = max(height - 1 - len(notes), 1)
        # Sized for the largest pass of the answer, so that the scale does not change from step to step.
        if self._most <= room and 2 * self._most + LABEL_GAP + MIN_LABEL_CELLS <= width:
            return [header, *self._large_picture(step, slots, width), *notes]
        room = min(2 * room, max(width, 1))
        return [header, *self._picture(step, slots[:room], len(slots) - room, width), *notes]

    def explain(self) -> str:
        """Return a description of the picture with the numbers of this pass."""
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
            parts.append(f"{counted(window, 'guess')} of the Jacobi window")
        if guesses := len(slots) - 1 - window:
            parts.append(counted(guesses, "drafted token"))
        text = (
            f"{counted(len(slots), 'slot')} went through the model at once: {_listed(parts)}. Each sees itself, what "
            f"it follows in its own branch, and the {cached}; no other branch."
        )
        if branches_of(slots) > 1:
            together = _branches(slots, "the window", " and ")
            text += f" So {together} had one pass together, and each slot got the answer that it would get alone."
        if any(slot.source == "hidden_transfer" for slot in slots):
            text += " Pseudo states, which enter between two layers, are not drawn."
        return text

    def _picture(self, step: protocol.Step, slots: list[Slot], left_out: int, width: int) -> list[Row]:
        """Return the picture with two slots per line: one in the upper half of each cell, one in the lower half."""
        mask, size = mask_of(slots), len(slots)
        colours = [self._colour(step, slot) for slot in slots]
        unseen = self._ink(UNSEEN_FADED)
        background = self.colors[2].rich_color
        rows: list[Row] = []
        for first in range(0, size, 2):
            row: Row = []
            for column in range(size):
                upper = colours[first] if mask[first] >> column & 1 else unseen
                lower = background
                if first + 1 < size:
                    lower = colours[first + 1] if mask[first + 1] >> column & 1 else unseen
                row.append((UPPER_HALF, Style(color=upper, bgcolor=lower)))
            rows.append([*row, *self._labels(step, slots, range(first, min(first + 2, size)), width - size)])
        if left_out > 0 and rows:
            more = f"+{counted(left_out, 'slot')}"
            rows[-1] = [*rows[-1][: min(size, width - len(more) - 1)], (" " + more, self.muted)]
        return rows

    def _large_picture(self, step: protocol.Step, slots: list[Slot], width: int) -> list[Row]:
        """Return the picture with one slot per line, two cells wide."""
        unseen = Style(bgcolor=self._ink(UNSEEN_FADED))
        rows: list[Row] = []
        for index, (slot, seen) in enumerate(zip(slots, mask_of(slots), strict=True)):
            filled = Style(bgcolor=self._colour(step, slot))
            row: Row = [("  ", filled if seen >> column & 1 else unseen) for column in range(len(slots))]
            rows.append([*row, *self._labels(step, slots, range(index, index + 1), width - 2 * len(slots))])
        return rows

    def _labels(self, step: protocol.Step, slots: list[Slot], shown: range, room: int) -> Row:
        """Return the names of a line's slots: the group at its first slot, and the tokens."""
        room -= LABEL_GAP
        if room < MIN_LABEL_CELLS:
            return []
        row: Row = [(" " * LABEL_GAP, Style())]
        for index in shown:
            slot = slots[index]
            begins = index == 0 or slots[index - 1].group != slot.group
            gap = "  " if index > shown.start else ""
            label = gap + (f"{_name(step, slot)} " if begins else "")
            token = shorten(visible(slot.piece), min(TOKEN_CELLS, room - cell_len(label) - 1)) if slot.piece else ""
            if cell_len(label + token) > room:
                break
            room -= cell_len(label + token)
            style = self.palette.style_of_step(step.index, len(step.token_ids)) if _is_accepted(slot) else Style()
            row += [(label, self.muted), *self.token(token, style)]
        return row

    def _colour(self, step: protocol.Step, slot: Slot) -> Color:
        """Return the colour of the cells that a slot attends to."""
        if _is_accepted(slot):
            return self.palette.style_of_step(step.index, len(step.token_ids)).color or self._ink(0.0)
        if slot.branch == LAST or slot.row is not None:
            return self._ink(WINDOW_FADED)
        return self._ink(BRANCHES_FADED[slot.branch % 2])

    def _ink(self, faded: float) -> Color:
        colour = self.faded(faded).color
        assert colour is not None
        return colour


def _is_accepted(slot: Slot) -> bool:
    return slot.accepted and slot.branch != LAST


def _name(step: protocol.Step, slot: Slot) -> str:
    """Return the name of a slot's group: a branch by its number, a window row as in the panel of the window."""
    if slot.branch == LAST:
        return "last"
    if slot.row is None or step.window is None:
        return f"branch {slot.branch + 1}"
    return f"row −{len(step.window.rows) - slot.row}"


def _size(step: protocol.Step, slots: list[Slot]) -> str:
    together = _branches(slots, "window", " + ")
    return counted(step.timing.slots, "slot") + (f" · {together}" if together else "")


def _branches(slots: list[Slot], window: str, joined: str) -> str:
    """Return what shares the pass: the Jacobi window, which counts as one branch, and the number of other branches."""
    has_window = any(slot.row is not None for slot in slots)
    others = branches_of(slots) - has_window
    return joined.join([*[window] * has_window, *[counted(others, "branch")] * bool(others)])


def _notes(step: protocol.Step, named: int, accepted: str) -> list[tuple[str, ...]]:
    """Return the notes, each in versions from long to short. `accepted` names the look of accepted tokens."""
    cached = f"{step.timing.cache_length:,}"
    notes: list[tuple[str, ...]] = [
        (
            f"filled: the slot of this row sees that of the column · {accepted}: accepted",
            f"filled: row sees column · {accepted}: accepted",
            "filled: row sees column",
        ),
        (
            f"every slot sees the {cached} tokens before them too, and no other branch",
            f"and all see the {cached} tokens before",
            f"+ {cached} tokens before",
        ),
    ]
    if step.timing.slots > named:
        missing = f"{step.timing.slots - named} of the slots"
        notes.insert(0, (f"{missing} are not named in this recording", f"{missing} are not named"))
    return notes


def _listed(parts: list[str]) -> str:
    """Return parts as a list in a sentence: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
