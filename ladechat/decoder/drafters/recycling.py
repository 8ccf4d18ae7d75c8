"""Token recycling: Luo et al. 2024, "Turning Trash into Treasure" (arXiv 2408.08696).

Every pass gives for every slot, including rejected ones, the most likely next tokens. A table stores them by the slot's
token, and a tree of guesses is read from that table: successors of successors. Ours also stores the first few by the
slot's last two tokens: after ``New York``, the successors of that pair are better guesses than those of any ``York``.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, PassResult, Proposal, Room

SOURCE = "recycling"
CHANCES = (0.35, 0.13, 0.06, 0.035, 0.025, 0.02, 0.015, 0.01)
"""How often the k-th successor of a token is the next one (SmolLM2-135M, Spec-Bench); so many are stored."""
CHANCES_AFTER_TWO = (0.58, 0.13, 0.05)
"""The same for successors of two tokens, of which fewer are stored."""
CHANCES_LATER = (0.04, 0.02, 0.012, 0.01, 0.01, 0.01, 0.01, 0.01)
"""The same for successors of the last token that are tried after those of the last two."""
CAPACITY = 1 << 13
"""The most pairs of tokens with stored successors; beyond it, the older half is dropped."""
UNKNOWN = -1


class Successor(NamedTuple):
    """A token that may come next, with its kind and chance: see `Node`."""

    token: int
    kind: tuple[str, str, int]
    chance: float


class RecyclingDrafter(Drafter):
    """Proposes the most likely tree of successors from its tables alone: it needs no match in the text.

    If they hold ``the → cat, dog`` and ``cat → sat``, the proposal after ``the`` is ``cat``, ``cat sat``, ``dog``.
    The table of single tokens takes 4 bytes per vocabulary entry and rank: 1.5 MB for 49,152 tokens.

    Args:
        nodes: the most drafted tokens in a pass.
        capacity: the most pairs of tokens with stored successors.
    """

    def __init__(self, nodes: int = 8, capacity: int = CAPACITY) -> None:
        self.nodes, self._capacity = nodes, capacity
        self._after_one: NDArray[np.int32] = np.empty((0, len(CHANCES)), np.int32)
        self._after_two: dict[tuple[int, int], list[int]] = {}
        self._text: Sequence[int] = ()

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set the most drafted tokens from `nodes`."""
        self.nodes = parameters.get("nodes", self.nodes)

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text = text

    def propose(self, room: Room) -> Proposal:
        """Return the nodes with the most likely paths, by the assumed chances of successors, best first."""
        nodes: list[Node] = []
        waiting: list[tuple[float, int, int, Successor, int, int]] = []  # −chance of the path, …, token before, depth
        order = 0

        def follow(parent: int, before: int, token: int, chance: float, depth: int) -> None:
            nonlocal order
            if depth <= room.depth:
                for one in self._successors(before, token):
                    order += 1
                    heapq.heappush(waiting, (-chance * one.chance, parent, order, one, token, depth))

        follow(ROOT, self._before(1), self._text[-1], 1.0, 1)
        while waiting and len(nodes) < self.nodes:
            negative, parent, _, (token, kind, chance), before, depth = heapq.heappop(waiting)
            nodes.append(Node(parent, token, SOURCE, kind, chance))
            follow(len(nodes) - 1, before, token, -negative, depth + 1)
        return Proposal(nodes)

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        """Overwrite the successors of every token of the pass; of a token that occurs twice, by its last slot."""
        vocabulary = result.logits.shape[-1]
        if len(self._after_one) != vocabulary:
            self._after_one = np.full((vocabulary, len(CHANCES)), UNKNOWN, np.int32)
        tokens, parents = result.tree.tokens, result.tree.parents
        likeliest = largest(result.logits, min(len(CHANCES), vocabulary))
        self._after_one[tokens, : likeliest.shape[1]] = likeliest
        before = [self._before(1 + len(result.tokens)), *(tokens[parent] for parent in parents[1:])]
        first = likeliest[:, : len(CHANCES_AFTER_TWO)].tolist()
        self._after_two.update(zip(zip(before, tokens, strict=True), first, strict=True))
        if len(self._after_two) > self._capacity:
            for pair in list(islice(self._after_two, self._capacity // 2)):
                del self._after_two[pair]

    def _before(self, count: int) -> int:
        """Return the token `count` places before the text's last one, or `UNKNOWN`."""
        return self._text[-1 - count] if len(self._text) > count else UNKNOWN

    def _successors(self, before: int, token: int) -> Iterator[Successor]:
        """Yield the successors of the two tokens, then those of the last token that are not among them."""
        row = self._after_one[token].tolist() if token < len(self._after_one) else []
        first = self._after_two.get((before, token), [])
        yield from map(Successor, first, _KINDS_AFTER_TWO, CHANCES_AFTER_TWO)
        others = [one for one in row if one != UNKNOWN and one not in first]
        yield from map(Successor, others, *((_KINDS_LATER, CHANCES_LATER) if first else (_KINDS, CHANCES)))


_KINDS, _KINDS_AFTER_TWO, _KINDS_LATER = (
    [(SOURCE, after, rank) for rank in range(len(CHANCES))] for after in ("one", "two", "one, behind")
)


BLOCK = 64


def largest(logits: torch.Tensor, count: int) -> NDArray[np.int64]:
    """Return (T, count) int64, the tokens with the largest logits in each row of (T, vocabulary), the largest first.

    On a CPU by blocks: the largest logits lie in the blocks with the largest maxima, and few of these need sorting.
    """
    rows, vocabulary = logits.shape
    if logits.device.type != "cpu" or vocabulary % BLOCK or vocabulary // BLOCK <= count:
        return np.asarray(logits.topk(count).indices.cpu())
    blocks = logits.view(rows, vocabulary // BLOCK, BLOCK)
    best = blocks.amax(-1).topk(count).indices
    within = blocks.gather(1, best[..., None].expand(-1, -1, BLOCK)).view(rows, -1).topk(count).indices
    return np.asarray(best.gather(1, within // BLOCK) * BLOCK + within % BLOCK)
