"""The interface that the decode loop needs of a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.verify_mask import SlotTree


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the passes of a runner can do.

    Attributes:
        single_token: why each pass takes one slot, in a sentence; None where it takes any tree of slots.
        logits_only: why passes give no hidden states, in a sentence; None where they do, see `Runner.forward_hidden`.
    """

    single_token: str | None = None
    logits_only: str | None = "Its passes give logits alone."

    @property
    def tree_attention(self) -> bool:
        """Whether a pass takes a tree of several slots."""
        return self.single_token is None


class Runner(Protocol):
    """A model with the KV cache of one sequence. The token at index i of that sequence has position i."""

    @property
    def capabilities(self) -> Capabilities:
        """What its passes can do. The same for as long as it lives."""
        ...

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens whose keys and values are cached, in order."""
        ...

    @property
    def context_length(self) -> int:
        """How many positions the model has: no slot may lie at or beyond it."""
        ...

    @property
    def max_positions(self) -> int:
        """How many positions the next pass may use, from that of slot 0 on; at least 1.

        Never more than the context has left, and fewer where the model's rotary angles depend on the farthest position
        of a pass: a drafted token must not change the angles of the real ones.
        """
        ...

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """Make the cache hold `tokens[:-1]`, keeping the common prefix it already holds.

        Runs in chunks and yields the number of tokens cached after each, so a caller can report progress or stop:
        closing the iterator leaves a cache that holds a shorter prefix. Yields nothing when nothing is missing.
        """
        ...

    def prepare(self) -> None:
        """Do what the first passes of a size would have to do besides (record them, say): before passes are timed."""
        ...

    def forward(self, tree: SlotTree) -> torch.Tensor:
        """One pass over the slots of `tree`; the logits, (T, vocabulary), on the model's device.

        Slot 0 stands at position `len(self.tokens)`. The new keys and values are provisional until `commit`. The logits
        may be overwritten by the next pass.
        """
        ...

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        """The same pass, with what a drafter wants of it besides: the logits are those of `forward`.

        Raises:
            ValueError: its passes give logits alone, or the pseudo rows do not fit the model.
        """
        ...

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """The token with the largest logit under every slot, and its log-probability where that costs nothing extra.

        Waits until the pass is done, on a GPU.
        """
        ...

    def commit(self, slots: Sequence[int]) -> None:
        """Move these slots of the last pass into the cache, in this order, and forget its other slots."""
        ...
