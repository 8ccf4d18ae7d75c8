"""The drafter that skips layers: chains, room and the adapted threshold, with a model that says what it is told."""

from collections.abc import Set

import pytest
import torch

from ladechat.decoder.drafters.drafter import NOTHING, ROOT, PassResult, Room
from ladechat.decoder.drafters.layer_skip import FIRST_THRESHOLD, LayerSkipDrafter, band, default_skipped
from ladechat.decoder.layer_skipping_model import Drafted
from ladechat.decoder.verify_mask import SlotTree
from tests.drafters.trees import PLENTY


class Scripted:
    """Drafts token after token, each with this probability, some fewer than it may; notes what it was asked for."""

    layers = 8

    def __init__(self, probability: float = 1.0, fewer: int = 0) -> None:
        self.probability, self.fewer = probability, fewer
        self.asked: list[tuple[int, frozenset[int], int, float]] = []

    def draft(self, token: int, skipped: Set[int], most: int, threshold: float) -> list[Drafted]:
        self.asked.append((token, frozenset(skipped), most, threshold))
        return [Drafted(token + 1 + index, self.probability) for index in range(most - self.fewer)]


def verified(drafter: LayerSkipDrafter, right: int, room: Room = PLENTY) -> None:
    """A pass in which the first drafts of a proposal are right."""
    nodes = drafter.propose(room).nodes
    tree = SlotTree.chain([0, *(node.token for node in nodes)])
    slots = range(1, len(tree))
    empty = torch.empty(0)
    drafter.observe(PassResult(tree, empty, [], tuple(slots[:right]), (0,) * (right + 1), 0.0), slots)


def test_a_proposal_is_a_chain_of_what_is_drafted() -> None:
    model = Scripted(0.97)
    drafter = LayerSkipDrafter(model, nodes=3)
    drafter.begin([4, 5, 6], 3)
    nodes = drafter.propose(PLENTY).nodes
    assert [(node.parent, node.token, node.chance) for node in nodes] == [(ROOT, 7, 0.97), (0, 8, 0.97), (1, 9, 0.97)]
    assert {node.kind for node in nodes} == {("layer_skip", 9)}
    assert model.asked == [(6, default_skipped(8), 3, FIRST_THRESHOLD)]


def test_no_more_is_drafted_than_there_is_room_for() -> None:
    model = Scripted()
    drafter = LayerSkipDrafter(model)
    drafter.begin([4], 1)
    assert len(drafter.propose(Room(tokens=4, positions=100)).nodes) == 3
    assert len(drafter.propose(Room(tokens=100, positions=3)).nodes) == 2
    drafter.configure({"nodes": 1, "window": 9})
    assert len(drafter.propose(PLENTY).nodes) == 1
    asked = len(model.asked)
    assert drafter.propose(Room(tokens=1, positions=100)) == NOTHING
    assert len(model.asked) == asked


def test_the_threshold_rises_where_too_few_drafts_are_right_and_falls_where_all_are() -> None:
    drafter = LayerSkipDrafter(Scripted(), nodes=6)
    drafter.begin([4], 1)
    for _ in range(50):
        verified(drafter, right=2)
    assert FIRST_THRESHOLD < drafter.threshold <= 1.0
    high = drafter.threshold
    for _ in range(50):
        verified(drafter, right=6)  # as long as drafts can be: a lower threshold would not make them longer
    assert drafter.threshold == pytest.approx(high, abs=0.01)
    drafter = LayerSkipDrafter(Scripted(fewer=1), nodes=6)
    drafter.begin([4], 1)
    for _ in range(50):
        verified(drafter, right=5)
    assert 0.0 <= drafter.threshold < FIRST_THRESHOLD


def test_a_pass_without_drafts_says_nothing_of_the_threshold() -> None:
    drafter = LayerSkipDrafter(Scripted())
    drafter.begin([4], 1)
    drafter.observe(PassResult(SlotTree(4), torch.empty(0), [], (), (5,), 0.0), ())
    assert drafter.threshold == FIRST_THRESHOLD


def test_some_layers_are_skipped_and_never_all() -> None:
    for layers in range(1, 90):
        skipped = default_skipped(layers)
        assert skipped < set(range(layers))
        assert layers < 2 or skipped
    assert default_skipped(30) == {7, 9, 11, 13, 15, 17, 19, 21}
    for wrong in ({8}, {-1}, set(range(8))):
        with pytest.raises(ValueError, match="Some of 8 layers"):
            LayerSkipDrafter(Scripted(), wrong)


def test_bands_of_probability() -> None:
    assert [band(probability) for probability in (0.0, 0.05, 0.1, 0.55, 0.99, 1.0)] == [0, 0, 1, 5, 9, 9]
