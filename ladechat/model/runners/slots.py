"""The slots of one pass as three plain values, for trees and for what is no tree: chunks of a prompt, filler slots."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.verify_mask import SlotTree


@dataclass(frozen=True, slots=True)
class Slots:
    """T slots behind the cached tokens, all of which every slot sees.

    Attributes:
        tokens: (T,) token ids.
        positions: (T,) int64, counted from the first position that is not cached.
        mask: (T, T) bool; `mask[i, j]` says that slot i sees slot j.
    """

    tokens: Sequence[int]
    positions: NDArray[np.int64]
    mask: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of_tree(cls, tree: SlotTree) -> "Slots":
        """Those of a tree, as it is now."""
        return cls(tuple(tree.tokens), tree.positions, tree.mask)

    @classmethod
    def causal(cls, tokens: Sequence[int]) -> "Slots":
        """Tokens in a row, each seeing those before it: a chunk of a prompt."""
        count = len(tokens)
        return cls(tuple(tokens), np.arange(count), np.tri(count, dtype=np.bool_))

    def with_fillers(self, tokens: Sequence[int], positions: Sequence[int]) -> "Slots":
        """The same with more slots at the end, each of which sees itself only and is seen by no other."""
        own, more = len(self), len(tokens)
        mask = np.zeros((own + more, own + more), np.bool_)
        mask[:own, :own] = self.mask
        mask[range(own, own + more), range(own, own + more)] = True
        return Slots((*self.tokens, *tokens), np.append(self.positions, np.asarray(positions, np.int64)), mask)

    def filled_up(self, count: int) -> "Slots":
        """The same with fillers, `count` slots together."""
        more = [0] * (count - len(self))
        return self.with_fillers(more, more) if more else self
