"""The slots of one forward pass: lookahead branch and verification branch, side by side in one sequence.

For W = 5, N = 4 and two guesses p, q (rows a, b, c of the window; a number is a position after the last token ``I``)::

         I a1 a2 a3 a4|b1 b2 b3 b4 b5|c2 c3 c4 c5 c6|p1 p2 p3 q1 q2 q3
    a2   #  #  #
    b1   #               #
    b5   #  #  #  #  #               #
    c2   #               #              #
    c6   #  #  #  #  #               #              #
    p3   #                                              #  #  #
    q2   #                                                       #  #

Every slot sees the whole KV cache and itself. Besides, row 0 is causal; a slot further down sees row 0 up to its own
column, and its own column above it; a guess sees ``I`` and the guess so far.

The chain ``I b1 c2`` obeys the rule for a guess too: the first column of the window is a guess that costs no slot. It
enters the tree first, and guesses that begin like it share its slots.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.candidate_tree import ROOT, CandidateTree
from ladechat.decoder.jacobi import JacobiWindow

SHAPES_KEPT, SLOTS_KEPT = 256, 128
"""For so many shapes of window and tree, of up to so many slots, it is kept who sees whom. A step of 5, 3, 5 mostly has
one that was there; large ones hardly ever, and their masks take memory."""


@dataclass(slots=True)  # not frozen: each step makes one, and that would take three times as long
class StepLayout:
    """What goes into one pass of T slots, and where its results are found. Nobody changes one.

    Attributes:
        tokens: (T,) token ids; slot 0 is the last accepted token.
        positions: (T,) positions, counted from slot 0.
        mask: (T, T) bool; `mask[i, j]` says that slot i sees slot j.
        fresh_slots: the W slots of the window's last row, under which its next row appears; empty without a window.
        node_slots: the slot of each node of the candidate tree.
    """

    tokens: tuple[int, ...]
    positions: NDArray[np.int64]
    mask: NDArray[np.bool_]
    fresh_slots: tuple[int, ...]
    node_slots: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.tokens)


def column_guess(window: JacobiWindow) -> tuple[int, ...]:
    """The tokens below ``I`` in the window's first column: a guess of N − 2 tokens whose slots are there anyway."""
    return tuple(row[0] for row in window.rows[1:])


def lay_out(last_token: int, window: JacobiWindow | None, tree: CandidateTree) -> StepLayout:
    """The layout of a step. With a window, the first nodes of `tree` must be its `column_guess`.

    Without a window this is pure verification, and with an empty tree besides, a plain decoding step.

    Raises:
        ValueError: the window does not begin with the last token.
    """
    if window is None:
        return StepLayout((last_token, *tree.tokens), *_places(None, tuple(tree.parents)))
    if window.rows[0][0] != last_token:
        raise ValueError("The window has to begin with the last accepted token.")
    shape = window.width, len(window.rows)
    drafted = len(window.rows) - 1
    tokens = (*chain.from_iterable(window.rows), *tree.tokens[drafted:])
    return StepLayout(tokens, *_places(shape, tuple(tree.parents)))


def causal_layout(tokens: Sequence[int]) -> StepLayout:
    """Tokens in a row, each seeing those before it."""
    return StepLayout(tuple(tokens), *_row(len(tokens)), (), ())


def chain_layout(last_token: int, chain: CandidateTree) -> StepLayout:
    """The last token and at most one guess, a tree without branches."""
    count = 1 + len(chain)
    return StepLayout((last_token, *chain.tokens), *_row(count), (), tuple(range(1, count)))


@lru_cache(maxsize=64)
def _row(count: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions and mask of tokens in a row, each seeing those before it."""
    return np.arange(count), np.tri(count, dtype=np.bool_)


Places = tuple[NDArray[np.int64], NDArray[np.bool_], tuple[int, ...], tuple[int, ...]]
"""Positions, mask, fresh slots and node slots of a layout."""


def _places(window: tuple[int, int] | None, parents: tuple[int, ...]) -> Places:
    width, rows = window or (1, 1)
    small = width * rows + len(parents) - (rows - 1) <= SLOTS_KEPT
    return _kept_places(window, parents) if small else _worked_out(window, parents)


@lru_cache(maxsize=SHAPES_KEPT)
def _kept_places(window: tuple[int, int] | None, parents: tuple[int, ...]) -> Places:
    return _worked_out(window, parents)


def _worked_out(window: tuple[int, int] | None, parents: tuple[int, ...]) -> Places:
    """All of a layout but its tokens. It depends on the shapes of window (W and its rows) and tree alone.

    Steps share it, so nobody may write to the arrays.
    """
    width, rows = window or (1, 1)
    branch, drafted = width * rows, rows - 1
    slots = branch + len(parents) - drafted
    node_slots = (*range(width, branch, width), *range(branch, slots))
    branch_positions, branch_mask = _window_branch(width, rows)
    places = branch_positions.tolist()
    mask = np.zeros((slots, slots), np.bool_)
    mask[:branch, :branch] = branch_mask
    for slot, parent in zip(node_slots[drafted:], parents[drafted:], strict=True):
        before = 0 if parent == ROOT else node_slots[parent]
        places.append(places[before] + 1)
        mask[slot] = mask[before]
        mask[slot, slot] = True
    positions = np.array(places, np.int64)
    for shared in (positions, mask):
        shared.flags.writeable = False
    return positions, mask, tuple(range(branch - width, branch)) if window else (), node_slots


@lru_cache(maxsize=64)
def _window_branch(width: int, rows: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Positions and mask of the lookahead branch, which depend on nothing but its shape."""
    row, column = np.divmod(np.arange(rows * width), width)
    in_row_0 = (row[None, :] == 0) & (column[None, :] <= column[:, None])
    in_column = (column[None, :] == column[:, None]) & (row[None, :] <= row[:, None])
    return (row + column).astype(np.int64), in_row_0 | in_column
