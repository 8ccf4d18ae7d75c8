"""What a pass over fixed memory is given: a layout, filled up to the slots that it has."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ladechat.model.fixed_pass import filled_up
from tests.model.layouts import random_layout
from tests.tiny import VOCABULARY


@given(st.randoms(use_true_random=False), st.integers(0, 20))
def test_slots_that_fill_a_layout_up_are_seen_by_none_of_its_own(dice: random.Random, more: int) -> None:
    layout = random_layout(dice, VOCABULARY)
    own = len(layout)
    full = filled_up(layout, own + more)
    assert len(full) == own + more
    assert full.tokens[:own] == layout.tokens
    assert (full.positions[:own] == layout.positions).all() and not full.positions[own:].any()
    assert (full.mask[:own, :own] == layout.mask).all() and not full.mask[:own, own:].any()
    assert (full.mask[own:, own:] == np.eye(more, dtype=np.bool_)).all()
    assert not full.mask[own:, :own].any()
    assert (full.fresh_slots, full.node_slots) == (layout.fresh_slots, layout.node_slots)
