"""Acceptance rates by kind of draft, learnt from the emitted tokens."""

from collections.abc import Hashable, Sequence

from ladechat.decoder.drafters.drafter import ROOT, Node
from ladechat.tuning.running_mean import RunningMean

ASSUMED = 8.0
"""The weight of a drafter's own assumption, in drafts."""
MEMORY = 200.0
"""A text changes: a rate is a mean over about so many drafts."""


class AcceptanceRates:
    """For each kind of node, the share that was right where its parent was.

    Whether a node was in the pass does not matter: whether the step emitted its token is known either way. So nothing
    has to be verified only to learn its rate.
    """

    def __init__(self) -> None:
        self._rates: dict[Hashable, RunningMean[float]] = {}

    def __call__(self, node: Node) -> float:
        """Return the chance that a node is right if its parent is, 0 to 1."""
        rate = self._rates.get(node.kind)
        return node.chance if rate is None else rate.value

    def observe(self, nodes: Sequence[Node], tokens: Sequence[int]) -> None:
        """Judge the nodes of a proposal by the tokens that a step emitted.

        With tokens ``cat ran`` and the nodes ``cat → sat → on`` and ``dog``, cat was right, sat and dog were wrong, and
        on was not judged.
        """
        depths: list[int] = []  # of right nodes; 0 for others
        for node in nodes:
            before = 0 if node.parent == ROOT else depths[node.parent]
            judged = before < len(tokens) and (node.parent == ROOT or before > 0)
            right = judged and tokens[before] == node.token
            depths.append(before + 1 if right else 0)
            if judged:
                if node.kind not in self._rates:
                    self._rates[node.kind] = RunningMean(MEMORY, node.chance, ASSUMED)
                self._rates[node.kind].add(float(right))
