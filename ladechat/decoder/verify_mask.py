"""The slots of one forward pass, as a tree: tokens and parents, from which positions and attention mask follow.

A slot's position is one after its parent's; it sees its ancestors, itself and the whole KV cache. Everything that a
pass verifies is such a tree: guesses with a common prefix share slots, and the Jacobi window is one too (see
`ladechat.decoder.jacobi`). For W = 5, N = 4 and guesses p, q (rows a, b, c of the window; a number is a position after
the last token ``I``)::

         I a1 a2 a3 a4 | b1 b2 b3 b4 b5 | c2 c3 c4 c5 c6 | p1 p2 p3 | q1 q2 q3
    a2   #  #  #
    b1   #                #
    b5   #  #  #  #  #                #
    c2   #                #                #
    c6   #  #  #  #  #                #                #
    p3   #                                                  #  #  #
    q2   #                                                             #  #
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

NO_PARENT = -1
"""The parent of slot 0, which sees only itself and the cache."""

CACHED_SHAPES, CACHED_SLOTS = 256, 128
"""The masks of so many pass shapes, of up to so many slots, are cached: fixed settings often give the same shape."""


class SlotTree:
    """The T slots of one pass as a tree. Slot 0 is the last accepted token; a slot comes after its parent.

    The children of a slot differ in their tokens: adding an existing child returns its slot.

    Attributes:
        tokens: (T,) token ids.
        parents: (T,) each slot's parent; `NO_PARENT` for slot 0.
        sources: (T,) the drafter that proposed each; "" for slot 0.
    """

    __slots__ = ("_children", "parents", "sources", "tokens")

    def __init__(self, last_token: int) -> None:
        self.tokens = [last_token]
        self.parents = [NO_PARENT]
        self.sources = [""]
        self._children: dict[tuple[int, int], int] = {}

    @classmethod
    def chain(cls, tokens: Sequence[int]) -> "SlotTree":
        """Return a tree of tokens (at least one) in a row, each seeing those before it."""
        tree = cls(tokens[0])
        for slot, token in enumerate(tokens[1:]):
            tree.add(slot, token)
        return tree

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, parent: int, token: int, source: str = "") -> int:
        """Return the slot of `token` below `parent`, adding it if missing. An existing slot keeps its source."""
        slot = self._children.get((parent, token))
        if slot is None:
            slot = self._children[parent, token] = len(self.tokens)
            self.tokens.append(token)
            self.parents.append(parent)
            self.sources.append(source)
        return slot

    def child(self, slot: int, token: int) -> int | None:
        """Return the slot of `token` below `slot`, or None."""
        return self._children.get((slot, token))

    def truncate(self, length: int) -> None:
        """Drop all slots from number `length` on. Slots come after their parents, so the rest is a tree."""
        for slot in range(length, len(self)):
            del self._children[self.parents[slot], self.tokens[slot]]
        for column in (self.tokens, self.parents, self.sources):
            del column[length:]

    @property
    def positions(self) -> NDArray[np.int64]:
        """(T,) int64 positions relative to slot 0. Read-only: shared by trees of the same shape."""
        return _geometry(tuple(self.parents))[0]

    @property
    def mask(self) -> NDArray[np.bool_]:
        """(T, T) bool; `mask[i, j]` says whether slot i sees slot j. Read-only and shared, like `positions`."""
        return _geometry(tuple(self.parents))[1]


Geometry = tuple[NDArray[np.int64], NDArray[np.bool_]]


def _geometry(parents: tuple[int, ...]) -> Geometry:
    return _cached_geometry(parents) if len(parents) <= CACHED_SLOTS else _computed_geometry(parents)


@lru_cache(maxsize=CACHED_SHAPES)
def _cached_geometry(parents: tuple[int, ...]) -> Geometry:
    return _computed_geometry(parents)


def _computed_geometry(parents: tuple[int, ...]) -> Geometry:
    """Compute positions and mask: each slot sees itself and what its parent sees, one position later."""
    mask = np.eye(len(parents), dtype=np.bool_)
    for slot, parent in enumerate(parents):
        if parent != NO_PARENT:
            mask[slot, : parent + 1] = mask[parent, : parent + 1]
    positions = mask.sum(axis=1, dtype=np.int64) - 1
    for shared in (positions, mask):
        shared.flags.writeable = False
    return positions, mask
