"""What hidden states are worth: rows where they save more than they cost, else a short trial now and then."""

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ladechat.tuning.learning import FIRST_PAUSE, LIKELY, LONGEST_PAUSE, TRIAL, HiddenRows, leaf_chances

LEAF = np.array([0.5, 0.3, 0.15, 0.05])


def having_seen(saved: float, row: float) -> HiddenRows:
    """One that has seen what drafts save, and what a row costs."""
    rows = HiddenRows()
    rows.saved.add(saved)
    rows.observe([0, 1], 1.0 + 2 * row, 1.0)
    return rows


def carriers(rows: HiddenRows) -> list[int]:
    """Those of the next pass."""
    found, pays = rows.choose(LEAF, 0.0)
    rows.backoff.observe(pays, TRIAL)
    return found


def test_slots_that_are_likely_enough_to_be_the_leaf_carry_rows() -> None:
    assert having_seen(saved=1.0, row=0.1).choose(LEAF, 0.0) == ([0, 1, 2], True)
    assert having_seen(saved=1.0, row=0.2).choose(LEAF, 0.0) == ([0, 1], True)
    assert having_seen(saved=1.0, row=0.0).choose(LEAF, 0.0) == ([0, 1, 2, 3], True)


def test_rows_that_cannot_pay_for_what_a_step_takes_besides_are_left_out() -> None:
    assert having_seen(saved=1.0, row=0.1).choose(LEAF, 0.6) == ([0, 1, 2], True)
    assert not having_seen(saved=1.0, row=0.1).choose(LEAF, 0.7)[1]


def test_what_does_not_pay_is_tried_again_after_longer_and_longer_pauses() -> None:
    rows = having_seen(saved=0.0, row=0.1)
    asked = [bool(carriers(rows)) for _ in range(20 * LONGEST_PAUSE)]
    runs = [(carrying, len(list(times))) for carrying, times in groupby(asked)]
    trials, pauses = runs[0:-1:2], runs[1:-1:2]
    assert {length for _, length in trials} == {TRIAL}
    lengths = [length for _, length in pauses]
    assert lengths[0] == FIRST_PAUSE and lengths[-1] == LONGEST_PAUSE
    assert all(after == min(2 * before + 1, LONGEST_PAUSE) for before, after in pairwise(lengths))
    assert sum(asked) < 0.02 * len(asked)


def test_in_a_trial_the_likely_leaves_carry_rows() -> None:
    assert HiddenRows().choose(np.array([0.4, LIKELY, LIKELY / 2, 0.3]), 0.0) == ([0, 1, 3], False)


def test_what_begins_to_pay_is_used_again() -> None:
    rows = having_seen(saved=0.0, row=0.1)
    while carriers(rows):
        pass
    for _ in range(20):
        rows.saved.add(1.0)
    assert any(len(carriers(rows)) == 3 for _ in range(FIRST_PAUSE + 1))


def test_a_machine_that_pauses_once_makes_no_row_dear() -> None:
    """The mean of 0.1 and of what a pass may count at most, (4 · 1.2 - 1) / 2."""
    rows = having_seen(saved=1.2, row=0.1)
    rows.observe([0, 1], 1000.0, 1.0)
    assert rows.row_seconds == pytest.approx(1.0)
    assert rows.choose(np.array([0.9, 0.1]), 0.0) == ([0], True)


def test_passes_that_are_always_many_times_dearer_are_known_as_such() -> None:
    """As on a GPU, where passes without rows are recorded and those with rows are not."""
    rows = HiddenRows()
    for _ in range(30):
        rows.observe([0], 20.0, 1.0)
    assert rows.row_seconds == pytest.approx(19.0, rel=0.1)


@given(st.data())
def test_exactly_one_slot_is_the_leaf(data: st.DataObject) -> None:
    parents, left, reached = [-1], [1.0], [1.0]
    for slot in range(1, data.draw(st.integers(1, 12))):
        parent = data.draw(st.integers(0, slot - 1))
        chance = data.draw(st.floats(0, 1)) * left[parent]
        left[parent] -= chance
        parents.append(parent)
        reached.append(chance)
        left.append(chance)
    leaf = leaf_chances(parents, reached)
    assert leaf.sum() == pytest.approx(1.0)
    assert leaf == pytest.approx(np.maximum(left, 0.0))
