"""Token recycling: the table that every slot writes, and the tree that is read off it."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings, strategies as st

from ladechat.decoder.drafters.drafter import ROOT, PassResult, Room
from ladechat.decoder.drafters.recycling import (
    CHANCES,
    CHANCES_AFTER_TWO,
    CHANCES_LATER,
    UNKNOWN,
    RecyclingDrafter,
    Successors,
)
from ladechat.decoder.verify_mask import SlotTree
from tests.drafters.trees import PLENTY, VOCABULARY, branches, drafts, paths, ranked

RANKS = len(CHANCES)


def show(
    drafter: RecyclingDrafter, tree: SlotTree, logits: Sequence[torch.Tensor], text: Sequence[int] = (VOCABULARY,)
) -> None:
    """A pass after a text, in which nothing was accepted."""
    drafter.begin(text, len(text))
    rows = torch.stack(list(logits))
    argmax = rows.argmax(-1).tolist()
    drafter.observe(PassResult(tree, rows, argmax, (), (argmax[0],), 0.0), [])


def successors(drafter: RecyclingDrafter, token: int) -> list[int]:
    """Those of the one token, the likeliest first: before it stands one that no pass has had."""
    drafter.configure({"nodes": RANKS})
    drafter.begin([VOCABULARY + 1, token], 2)
    return [node.token for node in drafter.propose(Room(tokens=2, positions=2)).nodes]


def test_before_any_pass_nothing_is_proposed() -> None:
    assert drafts(RecyclingDrafter(8), [1, 2, 3]) == []


def test_every_slot_writes_the_table_rejected_ones_too() -> None:
    drafter, tree = RecyclingDrafter(), SlotTree(1)
    for token in (2, 3, 4):
        tree.add(0, token)
    show(drafter, tree, [ranked(10, 20), ranked(11, 21), ranked(12, 22), ranked(13, 23)])
    assert [successors(drafter, token)[:2] for token in (1, 2, 3, 4)] == [[10, 20], [11, 21], [12, 22], [13, 23]]
    assert successors(drafter, 5) == []


def test_a_later_pass_overwrites_what_an_earlier_one_said() -> None:
    drafter = RecyclingDrafter()
    show(drafter, SlotTree(1), [ranked(10, 20, 30)])
    show(drafter, SlotTree(1), [ranked(11, 10)])
    assert successors(drafter, 1)[:2] == [11, 10]
    assert 30 not in successors(drafter, 1)[:3]


def test_of_a_token_that_stands_twice_in_a_pass_the_last_slot_counts() -> None:
    drafter = RecyclingDrafter()
    show(drafter, SlotTree.chain([1, 2, 1]), [ranked(10), ranked(11), ranked(12)])
    assert successors(drafter, 1)[0] == 12


def test_two_tokens_tell_more_than_the_last_alone() -> None:
    new, york, city, old, minster = range(5)
    drafter, tree = RecyclingDrafter(2), SlotTree(9)
    for first in (new, old):
        tree.add(tree.add(0, first), york)
    show(drafter, tree, [ranked(8), ranked(york), ranked(city), ranked(york), ranked(minster, city)])
    assert drafts(drafter, [new, york])[0] == (city,)
    assert drafts(drafter, [old, york])[0] == (minster,)
    assert drafts(drafter, [7, york])[0] == (minster,), "of the last slot"


def test_the_token_before_the_pass_counts_too() -> None:
    drafter = RecyclingDrafter(1)
    show(drafter, SlotTree(1), [ranked(10)], [5, 1, 10])  # the loop has appended what the pass gave
    show(drafter, SlotTree(1), [ranked(11)], [6, 1, 11])
    assert drafts(drafter, [4, 1]) == [(11,)]
    assert drafts(drafter, [5, 1]) == [(10,)]


def test_of_pairs_only_the_newer_are_remembered() -> None:
    drafter = RecyclingDrafter(1, Successors(capacity=8))
    for first in range(20):
        show(drafter, SlotTree.chain([first, 30]), [ranked(30), ranked(first)])
    assert drafts(drafter, [19, 30]) == [(19,)]
    assert drafts(drafter, [0, 30]) == [(19,)], "what followed the last token of another pair"


def test_what_was_learnt_in_one_text_is_known_in_the_next() -> None:
    drafter = RecyclingDrafter(1)
    show(drafter, SlotTree(1), [ranked(10)], [1])
    assert drafts(drafter, [7, 7, 1]) == [(10,)]


def test_what_was_likely_in_place_of_the_last_token_may_come_after_it() -> None:
    cat, sat, ran, dog = range(4)
    drafter = RecyclingDrafter(2)
    show(drafter, SlotTree(cat), [ranked(sat, ran, dog)], [cat, sat])
    proposed = drafter.propose(PLENTY).nodes
    assert [(node.parent, node.token) for node in proposed] == [(ROOT, ran), (ROOT, dog)]
    assert drafts(drafter, [cat, sat]) == [], "in another text it was not likely there"


def test_what_the_tables_have_is_not_proposed_twice() -> None:
    cat, sat, ran = range(3)
    drafter = RecyclingDrafter(RANKS)
    show(drafter, SlotTree(sat), [ranked(ran)])
    show(drafter, SlotTree(cat), [ranked(sat, ran)], [cat, sat])
    after = [node.token for node in drafter.propose(Room(2, 2)).nodes if node.parent == ROOT]
    assert after[0] == ran and len(after) == len(set(after))


@given(st.integers(0, 1 << 30), st.integers(1, 12), st.integers(2, 5), st.integers(3, 9))
@settings(max_examples=60)
def test_the_tree_is_the_likeliest_there_is_by_the_chances_of_ranks(
    seed: int, nodes: int, room: int, vocabulary: int
) -> None:
    """Against all paths through the table. Some tokens were never seen."""
    dice = torch.Generator().manual_seed(seed)
    seen = [token for token in range(vocabulary) if token == 0 or torch.rand((), generator=dice) < 0.8]
    logits = torch.randn(len(seen), vocabulary, generator=dice)
    drafter, tree = RecyclingDrafter(nodes), SlotTree(seen[0])
    for token in seen[1:]:
        tree.add(0, token)
    show(drafter, tree, list(logits))
    ranks = {token: row.argsort(descending=True).tolist() for token, row in zip(seen, logits, strict=True)}

    def successors(before: int, token: int) -> dict[int, float]:
        """The tree hung all tokens on the first of them, and nothing stood before that."""
        if token not in ranks:
            return {}
        if before != (UNKNOWN if token == seen[0] else seen[0]):
            return dict(zip(ranks[token], CHANCES, strict=False))
        known = len(CHANCES_AFTER_TWO)
        first = dict(zip(ranks[token], CHANCES_AFTER_TWO, strict=False))
        return first | dict(zip(ranks[token][known:RANKS], CHANCES_LATER, strict=False))

    level: dict[tuple[int, ...], float] = {(UNKNOWN, 0): 1.0}
    chances: dict[tuple[int, ...], float] = {}
    for _ in range(room - 1):
        level = {
            (*path, token): chance * one
            for path, chance in level.items()
            for token, one in successors(*path[-2:]).items()
        }
        chances |= level
    drafter.begin([0], 1)
    proposed = drafter.propose(Room(room, room)).nodes
    mine = [(UNKNOWN, 0, *path) for path in paths(proposed)]
    assert sorted((chances[path] for path in mine), reverse=True) == pytest.approx(
        sorted(chances.values(), reverse=True)[:nodes]
    )
    assert len(set(mine)) == len(mine)
    for path, node in zip(mine, proposed, strict=True):
        assert node.chance == successors(*path[-3:-1])[node.token]
    assert len(branches(proposed)) <= nodes
