"""The interface that a decoder needs of a model."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch

from ladechat.decoder.verify_mask import StepLayout


class Runner(Protocol):
    """A model with the KV cache of one sequence. The token at index i of that sequence has position i."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens whose keys and values are cached, in order."""
        ...

    @property
    def context_length(self) -> int:
        """How many positions the model has: no slot may lie at or beyond it."""
        ...

    @property
    def reach(self) -> int:
        """How many positions the next pass may use, from that of slot 0 on; at least 1.

        Never more than the context has left, and fewer where the model's rotary positions hang on the farthest of a
        pass: a drafted token must not change the angles of the real ones.
        """
        ...

    @property
    def plain_only(self) -> str | None:
        """Why this model takes one slot a pass, in a sentence; None if it takes any layout."""
        ...

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """Make the cache hold `tokens[:-1]`, keeping the common prefix it already holds.

        Runs in chunks and yields the number of tokens cached after each, so a caller can report progress or stop:
        closing the iterator leaves a cache that holds a shorter prefix. Yields nothing when nothing is missing.
        """
        ...

    def forward(self, layout: StepLayout) -> torch.Tensor:
        """One pass over the slots of `layout`; the logits, (T, vocabulary), on the model's device.

        Slot 0 stands at position `len(self.tokens)`. The new keys and values are provisional until `keep`.
        """
        ...

    def read(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """The likeliest token under every slot of a pass, and its log-probability where that costs less now than later.

        Waits until the pass is done, on a GPU.
        """
        ...

    def keep(self, slots: Sequence[int]) -> None:
        """Move these slots of the last pass into the cache, in this order, and forget its other slots."""
        ...
