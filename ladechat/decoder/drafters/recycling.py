"""Token recycling: Luo et al. 2024, "Turning Trash into Treasure" (arXiv 2408.08696).

Every pass says under every slot, also under the rejected ones, which tokens the model holds likeliest to come next. A
table keeps them by the slot's token, and a tree of guesses is read off that table: successors of successors.
"""

import heapq
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.drafters.drafter import ROOT, Drafter, Node, Outcome, Proposal, Room

SOURCE = "recycling"
CHANCES = (0.35, 0.13, 0.06, 0.035, 0.025, 0.02, 0.015, 0.01)
"""How often the k-th successor in the table is the next token (SmolLM2-135M, Spec-Bench); as many are kept."""
UNKNOWN = -1


class RecyclingDrafter(Drafter):
    """Proposes the likeliest tree of successors, by the table alone: it needs no match in the text.

    If the table says ``the → cat, dog`` and ``cat → sat``, the proposal after ``the`` is ``cat``, ``cat sat``, ``dog``.
    The table takes 4 bytes for each token of the vocabulary and each rank: 1.5 MB for 49,152 tokens.

    Args:
        nodes: the most drafted tokens in a pass.
    """

    def __init__(self, nodes: int = 8) -> None:
        self.nodes = nodes
        self._table: NDArray[np.int32] = np.empty((0, len(CHANCES)), np.int32)
        self._text: Sequence[int] = ()

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Take the most drafted tokens from `nodes`."""
        self.nodes = parameters.get("nodes", self.nodes)

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text = text

    def propose(self, room: Room) -> Proposal:
        """The nodes whose paths are likeliest by `CHANCES`, best first."""
        nodes: list[Node] = []
        waiting: list[tuple[float, int, int, int, int]] = []  # −chance of the path, parent, rank, token, depth

        def follow(parent: int, token: int, chance: float, depth: int) -> None:
            if depth <= room.depth and token < len(self._table):
                for rank, successor in enumerate(self._table[token].tolist()):
                    if successor != UNKNOWN:
                        heapq.heappush(waiting, (-chance * CHANCES[rank], parent, rank, successor, depth))

        follow(ROOT, self._text[-1], 1.0, 1)
        while waiting and len(nodes) < self.nodes:
            negative, parent, rank, token, depth = heapq.heappop(waiting)
            nodes.append(Node(parent, token, SOURCE, (SOURCE, rank), CHANCES[rank]))
            follow(len(nodes) - 1, token, -negative, depth + 1)
        return Proposal(nodes)

    def observe(self, outcome: Outcome, slots: Sequence[int]) -> None:
        """Overwrite the successors of every token of the pass; of one that stands in it twice, by its last slot."""
        vocabulary = outcome.logits.shape[-1]
        if len(self._table) != vocabulary:
            self._table = np.full((vocabulary, len(CHANCES)), UNKNOWN, np.int32)
        likeliest = largest(outcome.logits, min(len(CHANCES), vocabulary))
        self._table[outcome.tree.tokens, : likeliest.shape[1]] = likeliest


BLOCK = 64


def largest(logits: torch.Tensor, count: int) -> NDArray[np.int64]:
    """(T, count) the tokens with the largest logits in each row of (T, vocabulary), the largest first.

    On a CPU by blocks: the largest logits lie in the blocks with the largest maxima, and few of those need sorting.
    """
    rows, vocabulary = logits.shape
    if logits.device.type != "cpu" or vocabulary % BLOCK or vocabulary // BLOCK <= count:
        return np.asarray(logits.topk(count).indices.cpu())
    blocks = logits.view(rows, vocabulary // BLOCK, BLOCK)
    best = blocks.amax(-1).topk(count).indices
    within = blocks.gather(1, best[..., None].expand(-1, -1, BLOCK)).view(rows, -1).topk(count).indices
    return np.asarray(best.gather(1, within // BLOCK) * BLOCK + within % BLOCK)
