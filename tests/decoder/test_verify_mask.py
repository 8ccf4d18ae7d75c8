"""The slots of a pass: held equal, cell by cell, to the rule of docs/lookahead.md, and to what a tree is."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ladechat.decoder.drafters.drafter import Proposal, Room
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.drafters.pool import PoolDrafter
from ladechat.decoder.drafters.window import as_nodes
from ladechat.decoder.policy import FixedPolicy
from ladechat.decoder.verify_mask import NO_PARENT, SlotTree

LAST = 0
ROOMY = Room(tokens=999, positions=999)
GRID = list(product(range(1, 20), range(2, 10)))


class Cell:
    """A place of the picture in docs/lookahead.md: row r, column i of the window, or token k of guess g."""

    def __init__(self, token: int, position: int, *, window: tuple[int, int] | None = None, guess: int = 0) -> None:
        self.token, self.position, self.window, self.guess = token, position, window, guess

    def sees(self, other: "Cell") -> bool:
        """The rule, in its own words."""
        if self.window is None:  # a guess sees I and the guess so far
            return other.window == (0, 0) or (
                other.window is None and other.guess == self.guess and other.position <= self.position
            )
        if other.window is None:
            return False
        (row, column), (its_row, its_column) = self.window, other.window
        if row == 0:  # row 0 is causal
            return its_row == 0 and its_column <= column
        # a slot further down sees row 0 up to its own column, and its own column above it, and itself
        return (its_row == 0 and its_column <= column) or (its_column == column and its_row <= row)


def picture(rows: list[list[int]], tails: list[tuple[int, ...]]) -> list[Cell]:
    """Both branches in one row: the window row by row, then guess by guess."""
    cells = [Cell(token, r + i, window=(r, i)) for r, row in enumerate(rows) for i, token in enumerate(row)]
    for guess, tail in enumerate(tails):
        cells += [Cell(token, 1 + k, guess=guess) for k, token in enumerate(tail)]
    return cells


def laid_out(rows: list[list[int]], pool: NGramPool, guesses: int) -> tuple[SlotTree, list[int], list[tuple[int, ...]]]:
    """The tree that window and pool make under the fixed policy, the slot of each cell, and the guesses."""
    drafter = PoolDrafter(pool, len(rows) + 1, guesses, pool_prompt=False, pool_accepted=False)
    drafter.begin([LAST], 1)
    proposals = [Proposal(as_nodes(rows), whole=True), drafter.propose(ROOMY)]
    tree, (window, guessed), _ = FixedPolicy().choose(LAST, proposals)
    tails = [guess.tail for guess in pool.guesses([LAST], len(rows), guesses)]
    return tree, [0, *window, *guessed], tails


def texts_seen(cells: list[Cell]) -> list[tuple[int, ...]]:
    """What each cell sees, as tokens in the order of their positions; the rule gives one at each."""
    texts = []
    for cell in cells:
        seen = sorted((other for other in cells if cell.sees(other)), key=lambda other: other.position)
        assert [other.position for other in seen] == list(range(cell.position + 1))
        texts.append(tuple(other.token for other in seen))
    return texts


def check_where_all_tokens_differ(width: int, ngram: int, dice: random.Random) -> None:
    tokens = iter(range(1, 1000))
    rows = [[LAST if r == i == 0 else next(tokens) for i in range(width)] for r in range(ngram - 1)]
    pool = NGramPool()
    for _ in range(dice.randint(0, 6)):
        pool.add([LAST, *(next(tokens) for _ in range(dice.randint(1, ngram)))], "prompt")
    tree, slots, tails = laid_out(rows, pool, 5)
    cells = picture(rows, tails)
    assert slots == list(range(len(cells))), "one slot a cell, in the order of the picture"
    assert tree.tokens == [cell.token for cell in cells]
    assert tree.positions.tolist() == [cell.position for cell in cells]
    assert tree.mask.tolist() == [[cell.sees(other) for other in cells] for cell in cells]


def check_where_tokens_are_alike(width: int, ngram: int, dice: random.Random) -> None:
    few = dice.randint(1, 4)
    rows = [[LAST if r == i == 0 else dice.randrange(few) for i in range(width)] for r in range(ngram - 1)]
    pool = NGramPool()
    for _ in range(dice.randint(0, 8)):
        pool.add([LAST, *(dice.randrange(few) for _ in range(dice.randint(1, ngram)))], "prompt")
    tree, slots, tails = laid_out(rows, pool, 6)
    cells = picture(rows, tails)
    texts = texts_seen(cells)
    assert len(slots) == len(cells)
    for cell, slot, text in zip(cells, slots, texts, strict=True):
        seen = tree.mask[slot].nonzero()[0].tolist()
        assert tree.positions[slot] == cell.position
        assert tree.positions[seen].tolist() == list(range(cell.position + 1))
        assert tuple(tree.tokens[other] for other in seen) == text
    assert len(tree) == len(set(texts)), "cells that see the same share a slot, and no slot is left over"


MANY_MORE = [pytest.param(range(first, first + 10), marks=pytest.mark.full) for first in range(1, 41, 10)]


@pytest.mark.parametrize("seeds", [range(3), *MANY_MORE])
def test_window_and_guesses_follow_the_rule_slot_by_slot(seeds: range) -> None:
    for seed, (width, ngram) in product(seeds, GRID):
        dice = random.Random(f"{seed} {width} {ngram}")
        check_where_all_tokens_differ(width, ngram, dice)
        check_where_tokens_are_alike(width, ngram, dice)


# --- any tree --------------------------------------------------------------------------------------------------------

paths = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=8)


def tree_of(tails: list[list[int]]) -> SlotTree:
    tree = SlotTree(LAST)
    for number, tail in enumerate(tails):
        slot = 0
        for token in tail:
            slot = tree.add(slot, token, f"source {number}")
    return tree


def path_to(tree: SlotTree, slot: int) -> list[int]:
    path = []
    while slot != NO_PARENT:
        path.append(slot)
        slot = tree.parents[slot]
    return path[::-1]


@given(paths)
def test_there_is_one_slot_for_each_different_path(tails: list[list[int]]) -> None:
    tree = tree_of(tails)
    prefixes = {tuple(tail[:end]) for tail in tails for end in range(len(tail) + 1)} | {()}
    texts = [tuple(tree.tokens[slot] for slot in path_to(tree, number)[1:]) for number in range(len(tree))]
    assert len(texts) == len(set(texts))
    assert set(texts) == prefixes


@given(paths)
def test_a_slot_stands_behind_its_parent_and_sees_its_ancestors_and_itself(tails: list[list[int]]) -> None:
    tree = tree_of(tails)
    for slot in range(len(tree)):
        path = path_to(tree, slot)
        assert path == sorted(path), "parents come first"
        assert tree.mask[slot].nonzero()[0].tolist() == path
        assert tree.positions[slot] == len(path) - 1


@given(paths)
def test_a_child_is_found_by_its_token(tails: list[list[int]]) -> None:
    tree = tree_of(tails)
    for slot, token in product(range(len(tree)), range(4)):
        child = tree.child(slot, token)
        expected = [c for c in range(1, len(tree)) if (tree.parents[c], tree.tokens[c]) == (slot, token)]
        assert expected == ([] if child is None else [child])


def test_a_slot_keeps_the_source_that_it_came_with() -> None:
    tree = tree_of([[1, 2], [1, 3]])
    assert tree.tokens == [LAST, 1, 2, 3]
    assert tree.parents == [NO_PARENT, 0, 1, 1]
    assert tree.sources == ["", "source 0", "source 0", "source 1"]


@given(paths, paths, st.data())
def test_a_truncated_tree_is_a_tree_that_grows_as_any_other(
    tails: list[list[int]], more: list[list[int]], data: st.DataObject
) -> None:
    whole = tree_of(tails)
    length = data.draw(st.integers(1, len(whole)))
    cut, same = tree_of(tails), SlotTree(LAST)
    cut.truncate(length)
    for slot in range(1, length):
        same.add(whole.parents[slot], whole.tokens[slot], whole.sources[slot])
    for tail in more:
        for tree in (cut, same):
            slot = 0
            for token in tail:
                slot = tree.add(slot, token, "later")
    assert (cut.tokens, cut.parents, cut.sources) == (same.tokens, same.parents, same.sources)
    assert np.array_equal(cut.mask, same.mask)


@pytest.mark.parametrize("tails", [[[1, 2], [1, 3]], [list(range(1, 200))]], ids=["small", "large"])
def test_nobody_can_write_to_what_trees_of_one_shape_share(tails: list[list[int]]) -> None:
    tree = tree_of(tails)
    for shared in (tree.mask, tree.positions):
        with pytest.raises(ValueError, match="read-only"):
            shared[:] = 0


def test_trees_of_one_shape_share_their_mask() -> None:
    one, other = tree_of([[1, 2], [1, 3]]), tree_of([[4, 5], [4, 6]])
    assert one.mask is other.mask and one.positions is other.positions
    one.add(0, 7)
    assert one.mask.shape == (5, 5) and other.mask.shape == (4, 4)


def test_a_chain_is_a_triangle() -> None:
    tree = SlotTree.chain([5, 6, 7])
    assert np.array_equal(tree.mask, np.tril(np.ones((3, 3), bool)))
    assert tree.positions.tolist() == [0, 1, 2]
