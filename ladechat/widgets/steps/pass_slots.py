"""The slots of one forward pass, as named by its step event: what each holds, and which others it attends to.

The drafts of a step are the whole tree of its pass: node i is slot i + 1, and slot 0 is the last accepted token. A slot
attends to the KV cache, its ancestors and itself. So the attention mask follows from the event exactly.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ladechat import protocol

LAST = -1
"""The branch of slot 0."""


class Slot(NamedTuple):
    """One slot.

    Attributes:
        piece: its text; "" for slot 0 if the event does not hold it.
        parent: the index of the slot it follows; −1 for slot 0.
        row: its row in the Jacobi window; None outside the window.
        branch: the index of its branch of guesses, from 0; a branch begins where a path forks. `LAST` for slot 0.
        source: the drafter it came from; "" for slot 0.
        accepted: whether the model accepted it. Slot 0 is always accepted.
    """

    piece: str
    parent: int
    row: int | None
    branch: int
    source: str
    accepted: bool

    @property
    def group(self) -> tuple[int | None, int]:
        """The row of the window and the branch, equal for neighbours that belong together."""
        return self.row, self.branch


def slots_of(step: protocol.Step) -> list[Slot]:
    """Return the slots of a step's pass in order, as far as the event names them."""
    draft, window = step.draft, step.window
    slots = [Slot(_after(step), -1, None, LAST, "", True)]
    if draft is None:
        return slots
    rows = {} if window is None else _window_rows(draft, window)
    branches, with_child = 0, set[int]()
    for node, parent in enumerate(draft.parents):
        row, branch = rows.get(node), 0
        if row is None:
            branch = slots[parent + 1].branch
            if slots[parent + 1].row is not None or parent < 0 or parent in with_child:
                branch, branches = branches, branches + 1
            with_child.add(parent)
        accepted = draft.verdicts[node] == "accepted"
        slots.append(Slot(draft.pieces[node], parent + 1, row, branch, draft.sources[node], accepted))
    return slots


def _after(step: protocol.Step) -> str:
    """Return the last token before the step, if one of its views holds it, else ""."""
    if step.window is not None and step.window.rows and step.window.rows[0]:
        return step.window.rows[0][0]
    if step.pool is not None:
        return step.pool.after
    return "" if step.lens is None else step.lens.after


def branches_of(slots: Sequence[Slot]) -> int:
    """Return the number of branches in the pass: one for the Jacobi window, and one for each path of guesses."""
    window = any(slot.row is not None for slot in slots)
    return window + len({slot.branch for slot in slots if slot.row is None and slot.branch != LAST})


def mask_of(slots: Sequence[Slot]) -> list[int]:
    """Return the attention mask, one int of bits per slot: bit j of entry i is set if slot i attends to slot j."""
    seen: list[int] = []
    for index, slot in enumerate(slots):
        seen.append((seen[slot.parent] if slot.parent >= 0 else 0) | 1 << index)
    return seen


def _window_rows(draft: protocol.DraftTree, window: protocol.WindowView) -> dict[int, int]:
    """Return the nodes that are cells of the window, each with its row.

    Row 0 is a chain from the last token, and each column follows its cell of row 0. Two cells with equal tokens after
    the same slot share a slot, and so does a guess with that prefix.
    """
    children = {
        (parent, token): i for i, (parent, token) in enumerate(zip(draft.parents, draft.token_ids, strict=True))
    }
    found: dict[int, int] = {}
    above: list[int | None] = []
    for row, ids in enumerate(window.row_ids):
        nodes: list[int | None] = []
        for column, token in enumerate(ids):
            if not row and not column:
                nodes.append(-1)
                continue
            parent = nodes[column - 1] if not row else above[column] if column < len(above) else None
            node = None if parent is None else children.get((parent, token))
            if node is not None:
                found.setdefault(node, row)
            nodes.append(node)
        above = nodes
    return found
