"""The draft policy: decides which proposals go into a pass."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ladechat.decoder.drafters.drafter import ROOT, PassResult, Proposal
from ladechat.decoder.verify_mask import SlotTree

NOT_TAKEN = -1


class PassPlan(NamedTuple):
    """The input of a pass.

    Attributes:
        tree: the slots.
        slots: `slots[d][i]` is the slot of node i of drafter d's proposal, or `NOT_TAKEN`.
        carriers: the slots for which hidden states may be computed, where a drafter requests some; None for all.
    """

    tree: SlotTree
    slots: Sequence[Sequence[int]]
    carriers: Sequence[int] | None = None


class Policy(Protocol):
    """Chooses which drafts are worth a slot."""

    def drafting(self) -> bool:
        """Return whether drafters should be asked for the next pass."""
        ...

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        """Return the tree of the next pass; without proposals, slot 0 alone."""
        ...

    def observe(self, result: PassResult, proposals: Sequence[Proposal], overhead: float) -> None:
        """Learn from a step what its proposals, taken or not, were worth.

        Args:
            result: the result of the pass.
            proposals: the proposals for that pass.
            overhead: seconds that the step took outside the pass.
        """
        ...


class FixedPolicy:
    """Takes every proposal: the drafters' own parameters (such as W, N and G) limit their number."""

    def drafting(self) -> bool:
        return True

    def choose(self, last_token: int, proposals: Sequence[Proposal]) -> PassPlan:
        tree = SlotTree(last_token)
        return PassPlan(tree, [add_whole(tree, proposal) for proposal in proposals])

    def observe(self, result: PassResult, proposals: Sequence[Proposal], overhead: float) -> None:
        """Do nothing: a fixed policy does not learn."""


def add_whole(tree: SlotTree, proposal: Proposal) -> list[int]:
    """Add all nodes of a proposal to a tree; return their slots."""
    slots: list[int] = []
    for node in proposal.nodes:
        slots.append(tree.add(0 if node.parent == ROOT else slots[node.parent], node.token, node.source))
    return slots
