"""Token recycling: Luo et al. 2024, "Turning Trash into Treasure" (arXiv 2408.08696).

Every pass gives for every slot, including rejected ones, the most likely next tokens. A table stores them by the slot's
token, and a tree of guesses is read from that table: successors of successors. Ours also stores the first few by the
slot's last two tokens: after ``New York``, the successors of that pair are better guesses than those of any ``York``.

The tokens that were likely instead of the last one are guesses for the one after it: often a text says the one and then
the other (LogitSpec, arXiv 2507.01449).
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, BoundedDrafter, Node, PassResult, Proposal, Room

SOURCE = "recycling"
CHANCES = (0.35, 0.13, 0.06, 0.035, 0.025, 0.02, 0.015, 0.01)
"""How often the k-th successor of a token is the next one (SmolLM2-135M, Spec-Bench); so many are stored."""
CHANCES_AFTER_TWO = (0.58, 0.13, 0.05)
"""The same for successors of two tokens, of which fewer are stored."""
CHANCES_LATER = (0.04, 0.02, 0.012, 0.01, 0.01, 0.01, 0.01, 0.01)
"""The same for successors of the last token that are tried after those of the last two."""
CHANCES_INSTEAD = (0.025, 0.02, 0.015, 0.013, 0.01, 0.01, 0.01)
"""How often the k-th likeliest token in place of the last one is the next one, where the tables do not have it."""
CAPACITY = 1 << 13
"""The most pairs of tokens with stored successors; beyond it, the older half is dropped."""
UNKNOWN = -1


class Successor(NamedTuple):
    """A token that may come next, with its kind and chance: see `Node`."""

    token: int
    kind: tuple[str, str, int]
    chance: float


class Successors:
    """The most likely next tokens after a token, and after two tokens, as the logits of passes have shown them.

    The table of single tokens takes 4 bytes per vocabulary entry and rank: 1.5 MB for 49,152 tokens.

    Args:
        capacity: the most pairs of tokens with stored successors.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._after_one = _no_successors(0)
        self._after_two: dict[tuple[int, int], list[int]] = {}

    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return all successors as (n, 1 + ranks) rows after one token, and (m, 2 + ranks) rows after two."""
        known = np.flatnonzero((self._after_one != UNKNOWN).any(axis=1))
        after_one = np.column_stack([known, self._after_one[known]]).astype(np.int32)
        after_two = [(*pair, *first) for pair, first in self._after_two.items()]
        return after_one, np.array(after_two, np.int32).reshape(-1, 2 + len(CHANCES_AFTER_TWO))

    def restore(self, after_one: NDArray[np.int32], after_two: NDArray[np.int32]) -> None:
        """Replace all successors by those that `tables` has returned."""
        self._after_one = _no_successors(int(after_one[:, 0].max(initial=UNKNOWN)) + 1)
        self._after_one[after_one[:, 0]] = after_one[:, 1:]
        self._after_two = {(before, token): first for before, token, *first in after_two.tolist()}

    def learn(self, before: Sequence[int], tokens: Sequence[int], likeliest: NDArray[np.int64]) -> None:
        """Overwrite the successors of tokens, and of pairs of tokens; where one occurs twice, by its last row.

        Args:
            before: for each row the token before its last one; `UNKNOWN` where there is none.
            tokens: for each row the last token.
            likeliest: (T, ranks) the successors of each row, the likeliest first.
        """
        lacking = max(tokens, default=UNKNOWN) + 1 - len(self._after_one)
        if lacking > 0:
            self._after_one = np.concatenate([self._after_one, _no_successors(max(lacking, len(self._after_one)))])
        self._after_one[tokens, : likeliest.shape[1]] = likeliest
        first = likeliest[:, : len(CHANCES_AFTER_TWO)].tolist()
        self._after_two.update(zip(zip(before, tokens, strict=True), first, strict=True))
        if len(self._after_two) > self._capacity:
            for pair in list(islice(self._after_two, self._capacity // 2)):
                del self._after_two[pair]

    def after(self, before: int, token: int) -> Iterator[Successor]:
        """Yield the successors of the two tokens, then those of the last token that are not among them."""
        row = self._after_one[token].tolist() if token < len(self._after_one) else []
        first = self._after_two.get((before, token), [])
        yield from map(Successor, first, _KINDS_AFTER_TWO, CHANCES_AFTER_TWO)
        others = [one for one in row if one != UNKNOWN and one not in first]
        yield from map(Successor, others, *((_KINDS_LATER, CHANCES_LATER) if first else (_KINDS, CHANCES)))


def _no_successors(tokens: int) -> NDArray[np.int32]:
    return np.full((tokens, len(CHANCES)), UNKNOWN, np.int32)


class RecyclingDrafter(BoundedDrafter):
    """Proposes the most likely tree of successors from tables alone: it needs no match in the text.

    If they hold ``the → cat, dog`` and ``cat → sat``, the proposal after ``the`` is ``cat``, ``cat sat``, ``dog``.

    Args:
        nodes: the most drafted tokens in a pass.
        successors: the tables, which may already hold successors.
    """

    def __init__(self, nodes: int = 8, successors: Successors | None = None) -> None:
        self.nodes = nodes
        self._successors = Successors() if successors is None else successors
        self._text: Sequence[int] = ()
        self._instead: list[int] = []  # the tokens that were likely in place of the last one, the likeliest first

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text, self._instead = text, []

    def propose(self, room: Room) -> Proposal:
        """Return the nodes with the most likely paths, by the assumed chances of successors, best first."""
        nodes: list[Node] = []
        waiting: list[tuple[float, int, int, Successor, int, int]] = []  # −chance of the path, …, token before, depth
        order = 0

        def add(successors: Iterable[Successor], parent: int, before: int, chance: float, depth: int) -> None:
            nonlocal order
            for one in successors if depth <= room.depth else ():
                order += 1
                heapq.heappush(waiting, (-chance * one.chance, parent, order, one, before, depth))

        last = self._text[-1]
        after = list(self._successors.after(self._before(1), last))
        known = {one.token for one in after}
        instead = [one for one in self._instead if one not in known]
        add((*after, *map(Successor, instead, _KINDS_INSTEAD, CHANCES_INSTEAD)), ROOT, last, 1.0, 1)
        while waiting and len(nodes) < self.nodes:
            negative, parent, _, (token, kind, chance), before, depth = heapq.heappop(waiting)
            nodes.append(Node(parent, token, SOURCE, kind, chance))
            add(self._successors.after(before, token), len(nodes) - 1, token, -negative, depth + 1)
        return Proposal(nodes)

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        """Overwrite the successors of every token of the pass; of a token that occurs twice, by its last slot."""
        tokens, parents = result.tree.tokens, result.tree.parents
        before = [self._before(1 + len(result.tokens)), *(tokens[parent] for parent in parents[1:])]
        likeliest = result.likeliest(len(CHANCES))
        self._successors.learn(before, tokens, likeliest)
        self._instead = [token for token in likeliest[result.leaf].tolist() if token != result.tokens[-1]]

    def _before(self, count: int) -> int:
        """Return the token `count` places before the text's last one, or `UNKNOWN`."""
        return self._text[-1 - count] if len(self._text) > count else UNKNOWN


_KINDS, _KINDS_AFTER_TWO, _KINDS_LATER, _KINDS_INSTEAD = (
    [(SOURCE, after, rank) for rank in range(len(CHANCES))] for after in ("one", "two", "one, behind", "instead")
)
