"""Slots of a pass that are no tree: chunks of a prompt, and slots that fill a pass up."""

import random

import numpy as np
from hypothesis import given, strategies as st

from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.slots import Slots
from tests.model.runners.trees import random_tree
from tests.tiny import VOCABULARY


@given(st.randoms(use_true_random=False), st.integers(0, 20))
def test_fillers_are_seen_by_no_other_slot(dice: random.Random, more: int) -> None:
    slots = Slots.of_tree(random_tree(dice, VOCABULARY))
    own = len(slots)
    full = slots.filled_up(own + more)
    assert len(full) == own + more
    assert full.tokens[:own] == slots.tokens
    assert (full.positions[:own] == slots.positions).all() and not full.positions[own:].any()
    assert (full.mask[:own, :own] == slots.mask).all() and not full.mask[:own, own:].any()
    assert (full.mask[own:, own:] == np.eye(more, dtype=np.bool_)).all()
    assert not full.mask[own:, :own].any()


def test_a_chunk_of_a_prompt_is_a_chain() -> None:
    chain, chunk = Slots.of_tree(SlotTree.chain([4, 5, 6])), Slots.causal([4, 5, 6])
    assert chain.tokens == chunk.tokens
    assert (chain.positions == chunk.positions).all() and (chain.mask == chunk.mask).all()
