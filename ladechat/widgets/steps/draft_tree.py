"""The draft tree of one pass as slots that attend to each other.

The drafts of a step are the whole tree of its pass: node i is slot i + 1, and slot 0 is the last accepted token. A slot
attends to the KV cache, its ancestors and itself. So the attention mask follows from the event exactly.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ladechat import protocol
from ladechat.widgets.cells import visible
from ladechat.widgets.steps.guesses import children_of, numbers_of

LAST = -1
"""The node of the last token, which is slot 0."""


class Slot(NamedTuple):
    """One slot.

    Attributes:
        piece: its text; "" for slot 0 if the event does not hold it.
        parent: the index of the slot it follows; −1 for slot 0.
        row: its row in the Jacobi window; None outside the window.
        column: its column in the window, the lowest of those that share the slot.
        guess: the number of its guess, from 1; 0 for slot 0, and in the window.
        source: the drafter it came from; "" for slot 0.
        verdict: the model's verdict on it; None for slot 0, which is no draft.
    """

    piece: str
    parent: int
    row: int | None
    column: int
    guess: int
    source: str
    verdict: protocol.Verdict | None

    @property
    def group(self) -> tuple[int | None, int]:
        """The row of the window and the guess, equal for neighbours that belong together."""
        return self.row, self.guess


def slots_of(step: protocol.Step) -> list[Slot]:
    """Return the slots of a step's pass in order, as far as the event names them."""
    draft, window = step.draft, step.window
    slots = [Slot(_after(step), -1, None, 0, 0, "", None)]
    if draft is None:
        return slots
    cells: dict[int, tuple[int, int]] = {}
    for row, nodes in enumerate([] if window is None else window_nodes(draft, window)):
        for column, node in enumerate(nodes):
            if node is not None:
                cells.setdefault(node, (row, column))
    numbers = numbers_of(step)
    for node, parent in enumerate(draft.parents):
        row, column = cells.get(node, (-1, 0))
        in_window = row >= 0
        slots.append(
            Slot(
                draft.pieces[node],
                parent + 1,
                row if in_window else None,
                column,
                0 if in_window else numbers.get(node, 0),
                draft.sources[node],
                draft.verdicts[node],
            )
        )
    return slots


def drafted(step: protocol.Step) -> tuple[int, int]:
    """Return how many drafts a pass got of the window and of the pool's guesses; of these, alike ones share a slot."""
    cells = sum(map(len, step.window.row_ids)) - 1 if step.window is not None else 0  # the first is the last token
    known = step.pool.candidates if step.pool is not None else ()
    return cells, sum(len(one.token_ids) for one in known if one.tried)


def _after(step: protocol.Step) -> str:
    """Return the last token before the step, if one of its views holds it, else ""."""
    if step.window is not None and step.window.rows and step.window.rows[0]:
        return step.window.rows[0][0]
    if step.pool is not None:
        return step.pool.after
    return "" if step.lens is None else step.lens.after


def mask_of(slots: Sequence[Slot]) -> list[int]:
    """Return the attention mask, one int of bits per slot: bit j of entry i is set if slot i attends to slot j."""
    seen: list[int] = []
    for index, slot in enumerate(slots):
        seen.append((seen[slot.parent] if slot.parent >= 0 else 0) | 1 << index)
    return seen


def window_nodes(draft: protocol.DraftTree, window: protocol.WindowView) -> list[list[int | None]]:
    """Return the node of each cell of the window, row by row; `LAST` for the first, None for one without a slot.

    Row 0 is a chain from the last token, and each diagonal follows its cell of row 0. Two cells with equal tokens after
    the same slot share a slot, and so does a guess with that prefix.
    """
    children = children_of(draft)
    found: list[list[int | None]] = []
    for row, ids in enumerate(window.row_ids):
        nodes: list[int | None] = []
        for column, token in enumerate(ids):
            if not row and not column:
                nodes.append(LAST)
                continue
            above = found[-1] if row else []
            parent = nodes[column - 1] if not row else above[column] if column < len(above) else None
            nodes.append(None if parent is None else children.get((parent, token)))
        found.append(nodes)
    return found


def sight(slots: Sequence[Slot], index: int, rows: int) -> str:
    """Return what a slot attends to, in a sentence. `rows` is the number of rows of the window."""
    slot = slots[index]
    if not index:
        return f"The last token, {_quoted(slot)}, sees the text before it and itself."
    place = f"guess {slot.guess}" if slot.row is None else f"row −{rows - slot.row}, +{slot.row + slot.column}"
    path: list[str] = []
    parent = slot.parent
    while parent >= 0:
        path.insert(0, _quoted(slots[parent]))
        parent = slots[parent].parent
    others = "no other guess" if slot.row is None else "no other cell"
    return f"{_quoted(slot)} ({place}) sees the text, {' '.join(path)} and itself; {others}."


def _quoted(slot: Slot) -> str:
    return f"‹{visible(slot.piece)}›" if slot.piece else "the last token"
