"""The model's interface to the decode loop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ladechat.decoder.hidden import Hidden, Want
from ladechat.decoder.verify_mask import SlotTree


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities of a runner's passes.

    Attributes:
        single_token: the reason, as a sentence, why each pass takes one slot; None where it takes any tree of slots.
        logits_only: the reason, as a sentence, why passes give no hidden states; None where they do, see
            `Runner.forward_hidden`.
        processes: the number of processes that divide the slots below slot 0 among them.
    """

    single_token: str | None = None
    logits_only: str | None = "Its passes give logits alone."
    processes: int = 1

    @property
    def tree_attention(self) -> bool:
        """Whether a pass takes a tree of several slots."""
        return self.single_token is None


class Runner(Protocol):
    """A model with the KV cache of one sequence. The token at index i of that sequence has position i."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of its passes; constant during its lifetime."""
        ...

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens whose keys and values are cached, in order."""
        ...

    @property
    def context_length(self) -> int:
        """The number of positions the model has: every slot's position is below it."""
        ...

    @property
    def max_positions(self) -> int:
        """The number of positions that the next pass may use, starting with that of slot 0; at least 1.

        At most what the context has left, and fewer where the model's rotary angles depend on the highest position of a
        pass: a drafted token must not change the angles of the real ones.
        """
        ...

    def prefill(self, tokens: Sequence[int]) -> Iterator[int]:
        """Make `tokens[:-1]` the cached tokens: keep the common prefix of both, drop what follows it, read the rest.

        A generator that reads in chunks and yields the number of cached tokens after each, so that a caller can report
        progress or stop: closing it leaves a shorter prefix in the cache. Yields nothing when nothing is missing.

        Raises:
            ValueError: no tokens, or more than the context holds.
        """
        ...

    def prepare(self) -> None:
        """Do the one-time work of the first passes of each size (such as recording graphs), before passes are timed."""
        ...

    def forward(self, tree: SlotTree) -> torch.Tensor:
        """Run one pass over the T slots of `tree`, however many; return the (T, vocabulary) logits, in the model's type
        and on its device.

        Slot 0 has position `len(self.tokens)`. The new keys and values are provisional until `commit`: without one,
        the next pass drops them. It may also overwrite the logits. A runner whose memory is used up raises
        `MemoryError`, or what torch raises then.

        Raises:
            ValueError: a slot's position is not among the next `max_positions`, or it takes no tree of several slots.
        """
        ...

    def forward_hidden(self, tree: SlotTree, want: Want) -> tuple[torch.Tensor, Hidden]:
        """Run the same pass as `forward`; return its logits and the requested hidden states.

        Raises:
            ValueError: its passes give logits only, or the pseudo rows do not fit the model.
        """
        ...

    def argmax(self, logits: torch.Tensor) -> tuple[list[int], list[float] | None]:
        """Return the token with the largest logit in each slot, and its log-probability where that costs nothing extra.

        Waits until the pass is done, on a GPU.
        """
        ...

    def largest(self, logits: torch.Tensor, count: int) -> NDArray[np.int64]:
        """Return (T, count) int64, the tokens with the largest logits of a pass in each slot, the largest first."""
        ...

    def commit(self, slots: Sequence[int]) -> None:
        """Move these slots of the last pass into the cache, and drop its other slots.

        They are a path from slot 0 downwards, in this order, or none.

        Raises:
            RuntimeError: there was no pass since the last commit.
        """
        ...
