"""A pass is divided so that each slot is computed once, after all that it sees, and no process has much more to do."""

import random

from hypothesis import given, strategies as st

from ladechat.bench.modelled import tree_of
from ladechat.decoder.verify_mask import NO_PARENT
from ladechat.model.parallel.cut import cut, largest_pass
from tests.model.runners.trees import random_tree

trees = st.integers(0, 10_000).map(lambda seed: tuple(random_tree(random.Random(seed), 97).parents))
befores = st.lists(st.integers(0, 6), min_size=1, max_size=8).map(tuple)


def ancestors(parents: tuple[int, ...], slot: int) -> set[int]:
    above = set()
    while (slot := parents[slot]) != NO_PARENT:
        above.add(slot)
    return above


@given(trees, befores)
def test_every_slot_is_in_one_part_with_all_its_ancestors(parents: tuple[int, ...], before: tuple[int, ...]) -> None:
    parts = cut(parents, before)
    assert len(parts) == len(before)
    assert sorted(slot for part in parts for slot in part.own) == list(range(len(parents)))
    for part in parts:
        needed = {0}.union(*({slot} | ancestors(parents, slot) for slot in part.own))
        assert list(part.slots) == sorted(needed)


@given(trees, befores)
def test_no_part_is_larger_than_a_fair_share_and_one_path(parents: tuple[int, ...], before: tuple[int, ...]) -> None:
    processes, depth = len(before), max(len(ancestors(parents, slot)) for slot in range(len(parents)))
    fair = -(-(len(parents) + sum(before) + (processes - 1) * depth) // processes)
    largest = max(len(part.slots) + already for part, already in zip(cut(parents, before), before, strict=True))
    assert largest <= max(fair, max(before) + 1)


def test_of_two_processes_one_gets_each_branch_and_both_the_last_token() -> None:
    first, second = cut((-1, 0, 1, 2, 0, 4), (0, 0))
    assert (first.own, second.own) == ((0, 1, 2, 3), (4, 5))
    assert second.slots == (0, 4, 5)


def test_a_process_that_has_tokens_to_catch_up_with_gets_fewer_slots() -> None:
    star = (-1, *(0,) * 10)
    assert [len(part.own) for part in cut(star, (0, 0))] == [6, 5]
    assert [len(part.own) for part in cut(star, (4, 0))] == [4, 7]


def test_a_window_and_its_guesses_are_divided_in_nearly_equal_parts() -> None:
    tree = tuple(tree_of(15, 5, 15).parents)
    assert len(tree) == 120
    assert [largest_pass(tree, processes) for processes in (1, 2, 4, 8)] == [120, 61, 33, 21]
