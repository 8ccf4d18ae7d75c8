"""How often drafts of each kind are right, learnt from what was emitted."""

from collections.abc import Hashable, Sequence

from ladechat.decoder.drafters.drafter import ROOT, Node

ASSUMED = 8.0
"""As many drafts as a drafter's own assumption counts."""
MEMORY = 200.0
"""Older drafts count less and less: a text changes."""


class AcceptanceRates:
    """For each kind of node, the part that was right where the node before it was.

    Whether a node was in the pass does not matter: that a step emitted the token it proposed can be seen either way. So
    nothing has to be drafted only to learn what it is worth.
    """

    def __init__(self) -> None:
        self._rates: dict[Hashable, tuple[float, float]] = {}
        """For each kind the rate, and how many drafts it is the mean of."""

    def __call__(self, node: Node) -> float:
        """The chance that a node is right if its parent is, 0 to 1."""
        known = self._rates.get(node.kind)
        return node.chance if known is None else known[0]

    def observe(self, nodes: Sequence[Node], tokens: Sequence[int]) -> None:
        """Judge the nodes of a proposal by the tokens that a step emitted.

        With tokens ``cat ran``: of ``cat → sat → on`` and ``dog``, cat was right, sat and dog were wrong, and on was
        never judged.
        """
        depths: list[int] = []  # of right nodes; 0 for others
        for node in nodes:
            before = 0 if node.parent == ROOT else depths[node.parent]
            judged = before < len(tokens) and (node.parent == ROOT or before > 0)
            right = judged and tokens[before] == node.token
            depths.append(before + 1 if right else 0)
            if judged:
                rate, weight = self._rates.get(node.kind, (node.chance, ASSUMED))
                weight = min(weight + 1, MEMORY)
                self._rates[node.kind] = rate + (right - rate) / weight, weight
