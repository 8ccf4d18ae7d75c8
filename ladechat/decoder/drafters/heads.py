"""The common part of Medusa and hidden transfer: for each position ahead a list of guesses, combined into a tree.

They differ in how the lists are made. A list belongs to one position and does not depend on the tokens before it, so
the tree is their product: each guess of a position follows each of the position before. Its most likely nodes are
proposed.
"""

import heapq
from collections.abc import Sequence

from torch import Tensor

from ladechat.decoder.drafters.drafter import ROOT, BoundedDrafter, Node, PassResult, Proposal, Room
from ladechat.decoder.largest import largest

RANKS = 8
"""Guesses per position."""


class HeadsDrafter(BoundedDrafter):
    """Proposes the most likely paths through the guesses for the next positions; subclasses make these in `_read`.

    With ``cat, dog`` for the next token and ``sat`` for the one after it, it proposes ``cat → sat`` and ``dog → sat``.

    Args:
        source: the source of its drafts.
        chances: (k, `RANKS`) the assumed probability of each guess to be right if those before it are.
        nodes: the most drafted tokens in a pass.
    """

    def __init__(self, source: str, chances: Sequence[Sequence[float]], nodes: int = 16) -> None:
        self.source, self.nodes, self._chances = source, nodes, chances
        self._guesses: list[list[int]] = []

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        """Start a run without guesses: they need the hidden states of a pass."""
        self._guesses = []

    def propose(self, room: Room) -> Proposal:
        """Return the nodes with the most likely paths, by the assumed chances of their ranks, best first."""
        nodes: list[Node] = []
        waiting: list[tuple[float, int, int, int]] = []  # −chance of the path, parent, depth, rank

        def follow(parent: int, depth: int, chance: float) -> None:
            if depth < min(len(self._guesses), room.depth):
                for rank, assumed in zip(range(len(self._guesses[depth])), self._chances[depth], strict=False):
                    heapq.heappush(waiting, (-chance * assumed, parent, depth, rank))

        follow(ROOT, 0, 1.0)
        while waiting and len(nodes) < self.nodes:
            negative, parent, depth, rank = heapq.heappop(waiting)
            kind, assumed = (self.source, depth, rank), self._chances[depth][rank]
            nodes.append(Node(parent, self._guesses[depth][rank], self.source, kind, assumed))
            follow(len(nodes) - 1, depth + 1, -negative)
        return Proposal(nodes, from_hidden=True)

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        """Make the guesses for the next pass from this pass's hidden states of the last accepted slot."""
        logits = self._read(result, result.leaf)
        self._guesses = [] if logits is None else largest(logits, min(RANKS, logits.shape[-1])).tolist()

    def _read(self, result: PassResult, leaf: int) -> Tensor | None:
        """Return (k, vocabulary) logits; row i predicts the token i + 2 positions after slot `leaf`. None if it has no
        such hidden states.
        """
        raise NotImplementedError
