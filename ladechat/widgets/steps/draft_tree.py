"""The draft tree of one pass: as slots that attend to each other, and as guesses that share prefixes.

The drafts of a step are the whole tree of its pass: node i is slot i + 1, and slot 0 is the last accepted token. A slot
attends to the KV cache, its ancestors and itself. So the attention mask follows from the event exactly.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
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
    children = _children(draft)
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


class GuessLine(NamedTuple):
    """One guess, on a line of its own.

    Attributes:
        guess: the guess.
        shared: number of its first tokens that are in the lines above already.
        forks: for each number of shared tokens up to `shared`, whether a later line forks off there too.
    """

    guess: protocol.Candidate
    shared: int
    forks: tuple[bool, ...]


def in_lines(guesses: Iterable[protocol.Candidate]) -> list[GuessLine]:
    """Return guesses as lines, those with a common prefix below each other, prefixes in order of first appearance.

    Guesses that were not tried are no part of the tree, and come last.
    """
    guesses = list(guesses)
    tried = _ordered([guess for guess in guesses if guess.tried], 0)
    ids = [guess.token_ids for guess in tried]
    shared = [0, *(min(_common(one, other), len(other) - 1) for one, other in pairwise(ids))]
    lines = [
        GuessLine(guess, own, tuple(_forks_again(shared[index + 1 :], depth) for depth in range(own + 1)))
        for index, (guess, own) in enumerate(zip(tried, shared, strict=False))
    ]
    return [*lines, *(GuessLine(guess, 0, (False,)) for guess in guesses if not guess.tried)]


def branches(draft: protocol.DraftTree, known: Sequence[protocol.Candidate]) -> list[protocol.Candidate]:
    """Return a draft tree's branches, from the last token to each leaf, except prefixes of `known` guesses."""
    inner = set(draft.parents)
    shown = {tuple(each.token_ids[:end]) for each in known if each.tried for end in range(1, len(each.token_ids) + 1)}
    found: list[protocol.Candidate] = []
    for leaf in range(len(draft.token_ids)):
        if leaf in inner:
            continue
        path = [leaf]
        while 0 <= (parent := draft.parents[path[0]]) < path[0]:
            path.insert(0, parent)
        ids = [draft.token_ids[node] for node in path]
        if tuple(ids) not in shown:
            found.append(
                protocol.Candidate(
                    token_ids=ids,
                    pieces=[draft.pieces[node] for node in path],
                    source=draft.sources[leaf],
                    tried=True,
                    matched=sum(draft.verdicts[node] == "accepted" for node in path),
                )
            )
    return found


def verdict_of(draft: protocol.DraftTree, path: Sequence[int]) -> protocol.Verdict:
    """Return the verdict on the node at the end of a path from the root; `untested` if the tree has no such node."""
    node = -1
    children = _children(draft)
    for token in path:
        if (node, token) not in children:
            return "untested"
        node = children[node, token]
    return draft.verdicts[node]


def _ordered(guesses: Sequence[protocol.Candidate], depth: int) -> list[protocol.Candidate]:
    """Order guesses that share their first `depth` tokens so that those with the same next token are together."""
    groups: dict[int | None, list[protocol.Candidate]] = {}
    for guess in guesses:
        groups.setdefault(guess.token_ids[depth] if depth < len(guess.token_ids) else None, []).append(guess)
    ended = groups.pop(None, [])
    return ended + [
        one for group in groups.values() for one in (group if len(group) == 1 else _ordered(group, depth + 1))
    ]


def _forks_again(shared: Sequence[int], depth: int) -> bool:
    """Return whether one of the following lines shares exactly `depth` tokens with those before it."""
    for later in shared:
        if later <= depth:
            return later == depth
    return False


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two guesses, in tokens."""
    differing = (place for place, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs)
    return next(differing, min(len(one), len(other)))


def _children(draft: protocol.DraftTree) -> dict[tuple[int, int], int]:
    """Return each node by its parent and its token."""
    return {(parent, token): i for i, (parent, token) in enumerate(zip(draft.parents, draft.token_ids, strict=True))}
