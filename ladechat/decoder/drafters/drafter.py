"""What the decode loop and its policy know of a drafter."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import torch

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.verify_mask import SlotTree

ROOT = -1
"""The parent of a node that hangs on the last token."""
EARLIER = "earlier"
"""The source of what stems from an earlier text."""


class Node(NamedTuple):
    """A drafted token.

    Attributes:
        parent: the index of the node before it in the same proposal, which comes earlier; or `ROOT`.
        token: its id.
        source: who brought it, for people: "suffix", "prompt" …
        kind: its acceptance rate is learnt together with all others of this kind.
        chance: what is assumed of that rate before anything was seen: that it is right if its parent is, 0 to 1.
    """

    parent: int
    token: int
    source: str
    kind: Hashable
    chance: float


class Proposal(NamedTuple):
    """The nodes of one drafter for one pass.

    Attributes:
        nodes: what it proposes.
        whole: all of them go into the pass, or none.
        from_hidden: they are made of what the pass before gave besides its logits: see `Drafter.want`.
    """

    nodes: Sequence[Node]
    whole: bool = False
    from_hidden: bool = False


NOTHING = Proposal(())


class Room(NamedTuple):
    """What a pass has room for.

    Attributes:
        tokens: how many may still be emitted.
        positions: how many positions the pass may use, that of the last token included.
    """

    tokens: int
    positions: int

    @property
    def depth(self) -> int:
        """The longest useful draft: one token less than may be emitted, since the model adds one of its own."""
        return min(self.tokens, self.positions) - 1


class PassResult(NamedTuple):
    """What a pass has shown.

    Attributes:
        tree: its slots.
        logits: (T, vocabulary); not to be kept, the next pass may overwrite them.
        argmax: (T,) the token with the largest logit under every slot.
        path: the accepted slots.
        tokens: what was emitted.
        forward_seconds: what the pass took.
        hidden: what the drafters wanted of the pass; None where none wanted anything.
    """

    tree: SlotTree
    logits: torch.Tensor
    argmax: Sequence[int]
    path: tuple[int, ...]
    tokens: tuple[int, ...]
    forward_seconds: float
    hidden: Hidden | None = None

    @property
    def leaf(self) -> int:
        """The last accepted slot: the one under which the last emitted token was read."""
        return self.path[len(self.tokens) - 2] if len(self.tokens) > 1 else 0


class Drafter:
    """Proposes tokens that may come next. One run calls `begin` once, then for each pass `propose` (unless the policy
    pauses drafting) and `observe`.

    A wrong proposal costs a slot and never changes a token.

    Attributes:
        lens: whether somebody looks at what hidden states read at each layer. That costs time, and is worked out for
            nobody else. May be assigned between two passes.
        snapshot: what there is to show of the latest pass, if anything: one of `ladechat.decoder.step`.
    """

    lens = False
    snapshot: object | None = None

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Take over those parameters that it knows by name, between any two passes; the others stay as they are."""

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        """A run begins.

        Args:
            text: the token ids so far; the loop appends what is emitted, before `observe` is called.
            prompt_length: how many of them are the prompt; the others begin the answer, by another decoder.
        """

    def propose(self, room: Room) -> Proposal:
        """Tokens that may follow the text. Not asked for in a pause of the policy; `observe` then gets no slots."""
        raise NotImplementedError

    def want(self, tree: SlotTree) -> Want | None:
        """What it wants of the pass over `tree` besides the logits: see `PassResult.hidden`."""
        return None

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        """Learn from a pass.

        Args:
            result: of the pass.
            slots: for each node of the latest proposal its slot, or -1 if it was not taken; empty if it was not asked.
        """
