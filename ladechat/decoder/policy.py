"""Who decides which proposals go into a pass."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ladechat.decoder.drafters.drafter import ROOT, PassResult, Proposal
from ladechat.decoder.verify_mask import SlotTree

NOT_TAKEN = -1


class PassPlan(NamedTuple):
    """What goes into a pass.

    Attributes:
        tree: its slots.
        slots: `slots[d][i]` is the slot of node i of drafter d's proposal, or `NOT_TAKEN`.
        carriers: the slots that the pass may give hidden states for, where a drafter wants some; None for all.
    """

    tree: SlotTree
    slots: Sequence[Sequence[int]]
    carriers: Sequence[int] | None = None


class Policy(Protocol):
    """Chooses what is worth its slots."""

    def drafting(self) -> bool:
        """Whether drafters should be asked for the next pass."""
        ...

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        """The tree of the next pass; without proposals, slot 0 alone."""
        ...

    def observe(self, result: PassResult, proposals: Sequence[Proposal], overhead: float) -> None:
        """Learn from a step what the proposals for its pass, taken or not, were worth.

        Args:
            result: of the pass.
            proposals: for it.
            overhead: seconds that the step took outside the pass.
        """
        ...


class FixedPolicy:
    """Takes everything: the drafters' own parameters say how much that is, as W, N and G do."""

    def drafting(self) -> bool:
        return True

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        tree = SlotTree(last_token)
        return PassPlan(tree, [add_whole(tree, proposal) for proposal in proposals])

    def observe(self, result: PassResult, proposals: Sequence[Proposal], overhead: float) -> None:
        """There is nothing to learn."""


def add_whole(tree: SlotTree, proposal: Proposal) -> list[int]:
    """Add all nodes of a proposal to a tree; their slots."""
    slots: list[int] = []
    for node in proposal.nodes:
        slots.append(tree.add(0 if node.parent == ROOT else slots[node.parent], node.token, node.source))
    return slots
