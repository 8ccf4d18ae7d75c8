"""What is said of the cells of the Jacobi window beside their tokens: verdicts, and what is marked."""

from collections.abc import Sequence
from typing import NamedTuple

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS
from ladechat.widgets.steps.draft_tree import LAST, mask_of, slots_of, window_nodes

SAME = "="
"""Before a token that a row above has at this position too, and that needs no slot of its own."""


class Marks(NamedTuple):
    """What is said of the cells of a window beside their tokens.

    Attributes:
        signs: the marks of each cell, row by row, the fresh row last: the verdict on its draft, and `SAME`. Verdicts
            without `SAME` count each draft once.
        nodes: the node of each cell of the rows, if the step has drafts.
        verdicts: the verdict on each node.
        diagonal: the marked diagonal; None for none.
        slot: the slot of which is shown what it sees; None for none.
        seen: the slots that it sees, as bits.
        shift: how far the last row is shifted to the right.
    """

    signs: list[list[str]]
    nodes: list[list[int | None]]
    verdicts: Sequence[protocol.Verdict]
    diagonal: int | None
    slot: int | None
    seen: int
    shift: int

    @classmethod
    def of(
        cls, step: protocol.Step, view: protocol.WindowView, diagonal: int | None, slot: int | None, *, shifted: bool
    ) -> "Marks":
        draft = step.draft
        nodes = [] if draft is None else window_nodes(draft, view)
        verdicts = [] if draft is None else draft.verdicts
        taken: set[int] = set()
        signs: list[list[str]] = []
        for index in range(len(view.rows) + 1):
            ids, before = row_of(view, index)[1], row_of(view, index - 1)[1] if index and shifted else []
            signs.append([])
            for column in range(len(ids)):
                node = nodes[index][column] if index < len(nodes) else None
                if node is not None and node != LAST:
                    signs[-1].append(VERDICT_MARKS[verdicts[node]] + (SAME if node in taken else ""))
                    taken.add(node)
                    continue
                same = ids[column : column + 1] == before[column + 1 : column + 2]
                signs[-1].append(SAME if same else " ")
        mask = mask_of(slots_of(step)) if slot is not None and draft is not None else []
        if slot is None or slot >= len(mask):
            slot, seen = None, 0
        else:
            seen = mask[slot]
        marked = diagonal if slot is None and diagonal is not None and diagonal < len(view.fresh) else None
        return cls(signs, nodes, verdicts, marked, slot, seen, len(view.rows) if shifted else 0)

    @property
    def any(self) -> bool:
        return self.diagonal is not None or self.slot is not None

    @property
    def last(self) -> int | None:
        """The column of the screen that has to be visible: the last one of what is marked."""
        if self.diagonal is not None:
            return self.diagonal + self.shift
        node = None if self.slot is None else self.slot - 1
        at = next((row for row, nodes in enumerate(self.nodes) if node is not None and node in nodes), None)
        return None if at is None else self.nodes[at].index(node) + min(at, self.shift)

    def verdict(self, row: int, column: int) -> str:
        node = self.nodes[row][column]
        return "" if node is None else self.verdicts[node]

    def lit(self, row: int, column: int) -> int:
        """Return 2 for a cell of the marked diagonal and for the slot that sees, 1 for what it sees, 0 for others."""
        if self.diagonal is not None:
            return 2 * (column == self.diagonal)
        node = self.nodes[row][column] if row < len(self.nodes) else None
        if node is None or self.slot is None:
            return 0
        return 2 if node + 1 == self.slot else self.seen >> (node + 1) & 1


def row_of(view: protocol.WindowView, index: int) -> tuple[list[str], list[int]]:
    """Return pieces and tokens of a row; the one after the window's last is the fresh row."""
    if index < len(view.rows):
        return list(view.rows[index]), list(view.row_ids[index])
    return list(view.fresh), list(view.fresh_ids)
