"""The drafter interface of the decode loop and its policy."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.largest import largest
from ladechat.decoder.verify_mask import SlotTree

if TYPE_CHECKING:  # drafters of tokens run without torch, see `ladechat.plugins`
    from torch import Tensor

    from ladechat.decoder.hidden import Hidden, Want

ROOT = -1
"""The parent of a node that directly follows the last token."""
EARLIER = "earlier"
"""The source of drafts that stem from an earlier text."""


class Node(NamedTuple):
    """A drafted token.

    Attributes:
        parent: the index of the node before it in the same proposal, which comes earlier; or `ROOT`.
        token: its id.
        source: where it comes from, as shown to users: "suffix", "prompt" …
        kind: nodes of the same kind share one learnt acceptance rate.
        chance: the initial estimate of that rate: the probability that it is right if its parent is, 0 to 1.
    """

    parent: int
    token: int
    source: str
    kind: Hashable
    chance: float


class Proposal(NamedTuple):
    """The nodes of one drafter for one pass.

    Attributes:
        nodes: the proposed tokens.
        whole: all of them go into the pass, or none.
        from_hidden: they are made from the hidden states of the pass before: see `Drafter.want`.
    """

    nodes: Sequence[Node]
    whole: bool = False
    from_hidden: bool = False


NOTHING = Proposal(())


class Room(NamedTuple):
    """The limits of a pass.

    Attributes:
        tokens: how many tokens may still be emitted.
        positions: how many positions the pass may use, including that of the last token.
    """

    tokens: int
    positions: int

    @property
    def depth(self) -> int:
        """The length of the longest useful draft: one less than may be emitted, since the model adds its own token."""
        return min(self.tokens, self.positions) - 1


class PassResult(NamedTuple):
    """The result of a pass.

    Attributes:
        tree: its slots.
        logits: (T, vocabulary); valid until the next pass, which may overwrite them.
        argmax: (T,) the token with the largest logit in each slot.
        path: the accepted slots.
        tokens: the emitted tokens.
        forward_seconds: the duration of the pass.
        hidden: the hidden states that drafters requested; None where none did.
        largest: see `Runner.largest`.
    """

    tree: SlotTree
    logits: "Tensor"
    argmax: Sequence[int]
    path: tuple[int, ...]
    tokens: tuple[int, ...]
    forward_seconds: float
    hidden: "Hidden | None" = None
    largest: "Callable[[Tensor, int], NDArray[np.int64]]" = largest

    def likeliest(self, count: int) -> NDArray[np.int64]:
        """Return (T, count) int64, the most likely next tokens of each slot, the likeliest first; fewer of a smaller
        vocabulary.
        """
        return self.largest(self.logits, min(count, self.logits.shape[-1]))

    @property
    def leaf(self) -> int:
        """The last accepted slot: the one whose logits gave the last emitted token."""
        return self.path[len(self.tokens) - 2] if len(self.tokens) > 1 else 0


class Drafter:
    """Proposes tokens that may come next. One run calls `begin` once, then for each pass `propose` (unless the policy
    pauses drafting) and `observe`.

    A wrong proposal costs a slot and never changes a token.

    Attributes:
        free: whether its proposals take next to no time, so that it is asked while the policy pauses drafting, too.
        lens: whether to compute the tokens that pseudo rows predict at each layer. That costs time, so it is on only
            while they are shown. May be assigned between two passes.
        snapshot: the drafter's view of the latest pass for display, one of `ladechat.decoder.step`; None without one.
    """

    free = False
    lens = False
    snapshot: object | None = None

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set the given parameters that it knows, between any two passes; the others stay as they are."""

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        """Start a run.

        Args:
            text: the token ids so far; the loop appends the emitted tokens before it calls `observe`.
            prompt_length: how many of them are the prompt; the rest is the part of the answer by another decoder.
        """

    def propose(self, room: Room) -> Proposal:
        """Return tokens that may follow the text. Not called while the policy pauses, unless it is `free`; `observe`
        then gets no slots.
        """
        raise NotImplementedError

    def want(self, tree: SlotTree) -> "Want | None":
        """Return what to compute in the pass over `tree` in addition to logits (see `PassResult.hidden`), or None."""
        return None

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        """Learn from a pass.

        Args:
            result: the result of the pass.
            slots: for each node of the latest proposal its slot, or -1 if not taken; empty if `propose` was not called.
        """


class BoundedDrafter(Drafter):
    """A drafter whose parameter `nodes` is the most drafted tokens in a pass."""

    nodes: int

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        self.nodes = parameters.get("nodes", self.nodes)
