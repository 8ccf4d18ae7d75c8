"""The slots of one pass as three plain values: of a tree, of a prompt chunk, and with filler slots."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.verify_mask import SlotTree


@dataclass(frozen=True, slots=True)
class Slots:
    """T slots after the cached tokens, all of which every slot sees.

    Attributes:
        tokens: (T,) token ids.
        positions: (T,) int64, relative to the first position that is not cached.
        mask: (T, T) bool; `mask[i, j]` says whether slot i sees slot j.
    """

    tokens: Sequence[int]
    positions: NDArray[np.int64]
    mask: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of_tree(cls, tree: SlotTree) -> "Slots":
        """Return the present slots of a tree."""
        return cls(tuple(tree.tokens), tree.positions, tree.mask)

    @classmethod
    def causal(cls, tokens: Sequence[int]) -> "Slots":
        """Return the slots of tokens in a row, each seeing those before it: a chunk of a prompt."""
        count = len(tokens)
        return cls(tuple(tokens), np.arange(count), np.tri(count, dtype=np.bool_))

    def with_fillers(self, tokens: Sequence[int], positions: Sequence[int]) -> "Slots":
        """Return the same with further slots at the end, each of which sees only itself and is seen by no other."""
        own, more = len(self), len(tokens)
        mask = np.zeros((own + more, own + more), np.bool_)
        mask[:own, :own] = self.mask
        mask[range(own, own + more), range(own, own + more)] = True
        return Slots((*self.tokens, *tokens), np.append(self.positions, np.asarray(positions, np.int64)), mask)

    def filled_up(self, count: int) -> "Slots":
        """Return the same padded with fillers to `count` slots."""
        more = [0] * (count - len(self))
        return self.with_fillers(more, more) if more else self
