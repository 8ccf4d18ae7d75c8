"""Guesses for the next positions, from whoever they come: the tree that is made of them."""

from collections.abc import Sequence
from itertools import product

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import Tensor

from ladechat.decoder.drafters.drafter import Drafter, Node, PassResult, Room
from ladechat.decoder.drafters.heads import RANKS, HeadsDrafter
from ladechat.decoder.drafters.hidden_transfer import HiddenTransferDrafter
from ladechat.decoder.drafters.medusa import MedusaDrafter, MedusaHeads
from ladechat.decoder.hidden import Hidden, TransferMaps
from ladechat.decoder.step import LensSnapshot
from ladechat.decoder.verify_mask import SlotTree
from tests.drafters.trees import PLENTY, VOCABULARY, paths, ranked as best

GOOD, BAD = [0.6, 0.2, 0.1, 0.05, 0.02, 0.01, 0.01, 0.01], [0.3, 0.1, 0.05, 0.0, 0.0, 0.0, 0.0, 0.0]


class Told(HeadsDrafter):
    """Guesses what it is told to, position by position, and notes for which slot it was asked."""

    def __init__(self, chances: Sequence[Sequence[float]], nodes: int = 16) -> None:
        super().__init__("told", chances, nodes)
        self.logits: Tensor | None = None
        self.leaf = -1

    def _read(self, outcome: PassResult, leaf: int) -> Tensor | None:
        self.leaf = leaf
        return self.logits


def ranked(*lists: Sequence[int]) -> Tensor:
    """(k, vocabulary) logits with these tokens on top, position by position, the likeliest first."""
    return torch.stack([best(*tokens) for tokens in lists])


def show(drafter: Drafter, tree: SlotTree, path: Sequence[int] = (), hidden: Hidden | None = None) -> object | None:
    """A pass in which the slots of a path were accepted, and a token of the model's own came. What there is to show."""
    emitted = (*(tree.tokens[slot] for slot in path), 0)
    nothing = torch.zeros(len(tree), VOCABULARY)
    drafter.observe(PassResult(tree, nothing, [0] * len(tree), tuple(path), emitted, 0.0, hidden), [])
    return drafter.snapshot


def guessing(logits: Tensor | None, chances: Sequence[Sequence[float]], nodes: int = 16) -> Told:
    """A drafter that has seen a pass."""
    drafter = Told(chances, nodes)
    drafter.begin([1], 1)
    drafter.logits = logits
    show(drafter, SlotTree(1))
    return drafter


def test_before_the_first_pass_nothing_is_proposed_and_another_text_begins_anew() -> None:
    drafter = guessing(ranked([3], [4]), [GOOD, GOOD])
    assert drafter.propose(PLENTY).nodes
    drafter.begin([1, 2], 2)
    assert not drafter.propose(PLENTY).nodes


def test_a_node_has_the_chance_of_its_rank_and_is_learnt_by_position_and_rank() -> None:
    drafter = guessing(ranked([5, 6], [7, 8]), [[0.5, 0.3], [0.4, 0.2]], nodes=6)
    nodes = drafter.propose(PLENTY).nodes
    assert nodes[0] == Node(-1, 5, "told", ("told", 0, 0), 0.5)
    assert {(node.token, node.kind, node.chance) for node in nodes} == {
        (5, ("told", 0, 0), 0.5), (6, ("told", 0, 1), 0.3), (7, ("told", 1, 0), 0.4), (8, ("told", 1, 1), 0.2),
    }  # fmt: skip


def test_there_are_as_many_nodes_as_are_wanted_and_fit() -> None:
    drafter = guessing(ranked(*[range(8)] * 4), [GOOD] * 4)
    for nodes, tokens, positions in [(1, 9, 9), (64, 3, 9), (64, 9, 2), (9, 1, 9), (64, 9, 9), (16, 5, 5)]:
        drafter.configure({"nodes": nodes})
        proposed = drafter.propose(Room(tokens, positions)).nodes
        assert len(proposed) <= nodes
        assert all(len(path) < min(tokens, positions) for path in paths(proposed))
        assert bool(proposed) == (min(tokens, positions) > 1)


def test_where_nothing_could_be_read_nothing_is_proposed() -> None:
    drafter = guessing(ranked([3]), [GOOD])
    drafter.logits = None
    show(drafter, SlotTree(1))
    assert not drafter.propose(PLENTY).nodes


def test_what_comes_next_is_read_off_the_last_accepted_slot() -> None:
    tree = SlotTree.chain([1, 2, 3])
    other = tree.add(0, 9)
    drafter = guessing(ranked([3]), [GOOD])
    for path, leaf in [((), 0), ((1,), 1), ((1, 2), 2), ((other,), other)]:
        show(drafter, tree, path)
        assert drafter.leaf == leaf


@given(st.integers(0, 1 << 30), st.integers(1, 20), st.integers(2, 5), st.integers(1, 4), st.integers(3, 10))
@settings(max_examples=60)
def test_the_tree_is_the_likeliest_there_is(seed: int, nodes: int, room: int, ahead: int, vocabulary: int) -> None:
    """Against the product of all lists."""
    dice = torch.Generator().manual_seed(seed)
    logits = torch.randn(ahead, vocabulary, generator=dice)
    chances = torch.rand(ahead, RANKS, generator=dice).sort(descending=True).values.tolist()
    proposed = guessing(logits, chances, nodes).propose(Room(room, room)).nodes
    lists = [row.argsort(descending=True)[:RANKS].tolist() for row in logits]
    all_paths: dict[tuple[int, ...], float] = {}
    for depth in range(1, min(ahead, room - 1) + 1):
        for ranks in product(*(range(len(guesses)) for guesses in lists[:depth])):
            chance = 1.0
            for position, rank in enumerate(ranks):
                chance *= chances[position][rank]
            all_paths[tuple(lists[position][rank] for position, rank in enumerate(ranks))] = chance
    mine = paths(proposed)
    assert len(set(mine)) == len(mine) == min(nodes, len(all_paths))
    best = sorted(all_paths.values(), reverse=True)[: len(mine)]
    assert sorted((all_paths[path] for path in mine), reverse=True) == pytest.approx(best)
    for path, node in zip(mine, proposed, strict=True):
        depth = len(path) - 1
        assert node.chance == chances[depth][lists[depth].index(node.token)]


# --- who guesses -----------------------------------------------------------------------------------------------------

WIDTH = VOCABULARY


def hidden_of(states: Tensor, carriers: Sequence[int] = (), pseudo: Tensor | None = None) -> Hidden:
    """Of a model that reads a hidden state as logits."""
    return Hidden(states, carriers, pseudo, lambda state: state)


def test_medusa_guesses_with_its_heads_on_the_state_of_the_last_accepted_slot() -> None:
    dice = torch.Generator().manual_seed(0)
    heads = MedusaHeads(torch.randn(2, WIDTH, WIDTH, generator=dice), torch.randn(2, WIDTH, generator=dice))
    drafter, tree = MedusaDrafter(heads, [GOOD, BAD], nodes=1), SlotTree.chain([1, 2])
    states = torch.randn(2, WIDTH, generator=dice)
    want = drafter.want(tree)
    assert want is not None and want.maps is None
    drafter.begin([1], 1)
    for path, slot in [((), 0), ((1,), 1)]:
        show(drafter, tree, path, hidden_of(states))
        residual = heads.weights[0] @ states[slot] + heads.biases[0]
        logits = states[slot] + residual * residual.sigmoid()
        assert paths(drafter.propose(PLENTY).nodes) == [(int(logits.argmax()),)]


def test_hidden_transfer_guesses_with_the_pseudo_rows_of_the_last_accepted_slot_if_it_has_any() -> None:
    maps = TransferMaps((0, 0), torch.zeros(2, WIDTH, WIDTH))
    drafter = HiddenTransferDrafter(maps, [GOOD, GOOD], nodes=2, carriers=2)
    drafter.begin([1], 1)
    tree = SlotTree.chain([1, 2, 3])
    want = drafter.want(tree)
    assert want.maps is maps and list(want.carriers) == [0, 1]
    pseudo = torch.stack([ranked([5], [6]), ranked([7], [8])])
    for path, found in [((), [(5,), (5, 6)]), ((1,), [(7,), (7, 8)]), ((1, 2), [])]:
        show(drafter, tree, path, hidden_of(torch.zeros(3, WIDTH), want.carriers, pseudo))
        assert paths(drafter.propose(PLENTY).nodes) == found


def test_how_guesses_came_about_is_shown_with_the_pass_that_judges_them_and_only_to_who_looks() -> None:
    drafter = HiddenTransferDrafter(TransferMaps((2, 3), torch.zeros(2, WIDTH, WIDTH)), [GOOD, GOOD], carriers=2)
    drafter.begin([1], 1)
    tree = SlotTree.chain([1, 2, 3])
    assert not drafter.want(tree).lens
    drafter.lens = True
    assert drafter.want(tree).lens
    pseudo = torch.stack([ranked([5], [6]), ranked([7], [8])])
    # Of each layer (maps, carriers, d), here of layers 2 and 3, before the norm, which turns signs around.
    below = [-torch.stack([ranked([9]), ranked([10])], 1), -torch.stack([ranked([5], [11]), ranked([12], [8])], 1)]
    hidden = hidden_of(torch.zeros(3, WIDTH), [0, 1], pseudo)._replace(below=below, norm=torch.neg)
    assert show(drafter, tree, (1,), hidden) is None
    assert show(drafter, tree, (), hidden) == LensSnapshot(0, (2, 3, 4), ((10,), (12, 8), (7, 8)))
    assert show(drafter, tree, (1, 2), hidden) == LensSnapshot(0, (2, 3, 4), ((9,), (5, 11), (5, 6)))
    assert show(drafter, tree, (), hidden) is None, "the last slot carried none"
    drafter.begin([1], 1)
    assert show(drafter, tree, (), hidden) is None
    show(drafter, tree, (), hidden._replace(below=()))
    assert show(drafter, tree, (), hidden) is None, "nobody looked at the pass before"


def test_as_many_slots_carry_pseudo_rows_as_are_wanted_and_there() -> None:
    drafter = HiddenTransferDrafter(TransferMaps((0,), torch.zeros(1, 2, 2)), [GOOD])
    for carriers, slots, wanted in [(64, 3, 3), (2, 3, 2), (1, 1, 1)]:
        drafter.configure({"carriers": carriers, "nodes": 4})
        assert len(drafter.want(SlotTree.chain(list(range(slots)))).carriers) == wanted
    assert drafter.nodes == 4
