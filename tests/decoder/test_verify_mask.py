"""The layout of a step against the rule it is drawn from, slot by slot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.candidate_tree import ROOT, CandidateTree
from ladechat.decoder.jacobi import JacobiWindow
from ladechat.decoder.verify_mask import causal_layout, column_guess, lay_out

LAST = 9


@st.composite
def steps(draw: st.DrawFn) -> tuple[JacobiWindow | None, CandidateTree]:
    tree = CandidateTree()
    window = None
    if draw(st.booleans()):
        successors = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
        window = JacobiWindow(
            LAST, draw(st.integers(1, 6)), draw(st.integers(2, 6)), lambda token: successors[token % len(successors)]
        )
        tree.add(column_guess(window), "window")
    for tail in draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=5)):
        tree.add(tail, "prompt")
    return window, tree


def ancestors(tree: CandidateTree, node: int) -> set[int]:
    found = set()
    while node != ROOT:
        found.add(node)
        node = tree.parents[node]
    return found


@given(steps())
def test_every_slot_sees_exactly_what_the_rule_says(step: tuple[JacobiWindow | None, CandidateTree]) -> None:
    window, tree = step
    layout = lay_out(LAST, window, tree)
    width = window.width if window else 1
    window_slots = width * len(window.rows) if window else 1
    node_of = {slot: node for node, slot in enumerate(layout.node_slots) if slot >= window_slots}
    for i in range(len(layout)):
        for j in range(len(layout)):
            if i < window_slots:
                row_i, column_i, row_j, column_j = i // width, i % width, j // width, j % width
                sees = j < window_slots and (
                    (row_j == 0 and column_j <= column_i) or (column_j == column_i and row_j <= row_i)
                )
            else:
                sees = j == 0 or j in {layout.node_slots[node] for node in ancestors(tree, node_of[i])}
            assert layout.mask[i, j] == sees, (i, j)


@given(steps())
def test_positions_count_from_the_last_token(step: tuple[JacobiWindow | None, CandidateTree]) -> None:
    window, tree = step
    layout = lay_out(LAST, window, tree)
    assert layout.positions[0] == 0
    if window:
        for row in range(len(window.rows)):
            for column in range(window.width):
                assert layout.positions[row * window.width + column] == row + column
    for node, slot in enumerate(layout.node_slots):
        assert layout.positions[slot] == tree.depths[node]


@given(steps())
def test_what_a_slot_sees_has_one_token_at_each_position_up_to_its_own(
    step: tuple[JacobiWindow | None, CandidateTree],
) -> None:
    layout = lay_out(LAST, *step)
    for i in range(len(layout)):
        seen = sorted(layout.positions[layout.mask[i]].tolist())
        assert seen == list(range(layout.positions[i] + 1))


@given(steps())
def test_tokens_stand_where_the_window_and_the_tree_say(step: tuple[JacobiWindow | None, CandidateTree]) -> None:
    window, tree = step
    layout = lay_out(LAST, window, tree)
    assert layout.tokens[0] == LAST
    assert [layout.tokens[slot] for slot in layout.node_slots] == tree.tokens
    if window:
        assert layout.tokens[: window.width * len(window.rows)] == tuple(token for row in window.rows for token in row)
        assert [layout.tokens[slot] for slot in layout.fresh_slots] == window.rows[-1]


@given(steps())
def test_shared_prefix_guesses_share_slots(step: tuple[JacobiWindow | None, CandidateTree]) -> None:
    window, tree = step
    layout = lay_out(LAST, window, tree)
    window_slots = window.width * len(window.rows) if window else 1
    free = len(column_guess(window)) if window else 0
    assert len(layout) == window_slots + len(tree) - free
    assert len(set(layout.node_slots)) == len(tree)


def test_steps_of_one_shape_share_what_nobody_can_write_to() -> None:
    one, other = CandidateTree(), CandidateTree()
    for tree, tails in ((one, [(1, 2), (1, 3)]), (other, [(4, 5), (4, 6)])):
        for tail in tails:
            tree.add(tail, "prompt")
    first, second = lay_out(LAST, None, one), lay_out(7, None, other)
    assert first.mask is second.mask and (first.tokens, second.tokens) == ((LAST, 1, 2, 3), (7, 4, 5, 6))
    for shared in (first.mask, first.positions):
        with pytest.raises(ValueError, match="read-only"):
            shared[:] = 0


def test_a_causal_layout_is_a_triangle() -> None:
    layout = causal_layout([5, 6, 7])
    assert np.array_equal(layout.mask, np.tril(np.ones((3, 3), bool)))
    assert layout.positions.tolist() == [0, 1, 2]
