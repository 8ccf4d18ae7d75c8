"""Suffix matching: right, against a search through everything that was said, and bounded."""

import random
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from ladechat.decoder.drafters.drafter import EARLIER, ROOT, Node, Room
from ladechat.decoder.drafters.suffix import LONGEST_MATCH, SEARCHED, SOURCE, SuffixDrafter
from tests.drafters.trees import PLENTY, branches, drafts, paths
from tests.drafters.turns import turns

Text = list[int]
Match = tuple[int, int, int]
"""The tokens alike, the number of the text, and the place in it where that goes on."""


def matches(texts: Sequence[Sequence[int]]) -> list[Match]:
    """Where the end of the last text stood before and something follows, by searching everywhere; the best first."""
    end, found = texts[-1], []
    for number, text in enumerate(texts):
        for place in range(2, len(text)):
            alike = 0
            while alike < min(place, len(end), LONGEST_MATCH) and text[place - 1 - alike] == end[-1 - alike]:
                alike += 1
            if alike >= 2:
                found.append((alike, number, place))
    return sorted(found, reverse=True)


def told(drafter: SuffixDrafter, text: Sequence[int], prompt: int | None = None) -> None:
    """Let the drafter see a text written: a prompt, then a token a pass."""
    growing = list(text[:prompt])
    drafter.begin(growing, len(growing))
    for token in text[len(growing) :]:
        drafter.propose(PLENTY)
        growing.append(token)
    drafter.propose(PLENTY)


def test_rivals_of_the_best_continuation_are_proposed_after_it() -> None:
    drafter = SuffixDrafter(8)
    drafter.begin([1, 2, 3, 90, 91, 5, 2, 3, 92, 93, 1, 2, 3], 13)
    nodes = drafter.propose(PLENTY).nodes
    best, rival = (node for node in nodes if node.parent == ROOT)
    assert (best.token, rival.token) == (90, 92)
    assert best.chance >= rival.chance


def test_a_longer_match_is_trusted_more() -> None:
    short, long = SuffixDrafter(1), SuffixDrafter(1)
    short.begin([1, 2, 9, 1, 2], 5)
    long.begin([*range(12), 99, *range(12)], 25)
    assert long.propose(PLENTY).nodes[0].chance > short.propose(PLENTY).nodes[0].chance


def test_a_longer_match_is_followed_further() -> None:
    lengths = []
    for match in (2, 3, 4):
        begun = list(range(10, 10 + match))
        lengths.append(len(drafts(SuffixDrafter(50), [*begun, *range(30, 60), *begun])[0]))
    assert lengths == sorted(set(lengths))


def test_the_last_tokens_of_an_answer_are_known_too() -> None:
    """They come behind the last proposal of their run."""
    drafter, text = SuffixDrafter(4), [1, 2]
    drafter.begin(text, 2)
    drafter.propose(PLENTY)
    text += [3, 4, 5, 6]
    assert drafts(drafter, [9, 9, 3, 4]) == [(5, 6)]


def test_a_conversation_that_goes_on_is_stored_once() -> None:
    drafter, text = SuffixDrafter(8), list(range(100))
    told(drafter, text[:40], prompt=20)
    told(drafter, text, prompt=60)
    drafter.begin(text, len(text))
    assert drafter.propose(PLENTY).nodes == [], "no token came twice, unless the text is known twice"


def test_a_long_conversation_does_not_push_out_what_was_there_before() -> None:
    drafter = SuffixDrafter(3, capacity=400)
    told(drafter, [1, 2, 3, 4, 5])
    conversation = list(range(100, 300))
    for turn in range(20, 201, 10):
        told(drafter, conversation[:turn], prompt=turn - 5)
    assert drafts(drafter, [*conversation, 1, 2]) == [(3, 4, 5)]


def test_parameters_change_between_two_passes() -> None:
    drafter = SuffixDrafter(8)
    text = [*range(30), *range(20)]
    drafter.begin(text, len(text))
    sizes = []
    for nodes in (8, 2, 5):
        drafter.configure({"nodes": nodes, "window": 1})
        sizes.append(len(drafter.propose(PLENTY).nodes))
    assert sizes == [8, 2, 5]


texts_of_few_words = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=14), min_size=1, max_size=3)


@given(texts_of_few_words, st.integers(1, 12), st.integers(1, 9), st.integers(1, 9))
def test_proposals_are_what_a_search_through_everything_finds(
    texts: list[Text], nodes: int, tokens: int, positions: int
) -> None:
    drafter = SuffixDrafter(nodes)
    for text in texts:
        told(drafter, text, prompt=1)
    proposed = drafter.propose(Room(tokens, positions)).nodes
    known = [text for text, after in pairwise([*texts, []]) if after[: len(text)] != text]  # the others went on
    check(proposed, known, nodes, min(tokens, positions) - 1)


def check(proposed: Sequence[Node], known: Sequence[Text], nodes: int, depth: int) -> None:
    """Compare a proposal with a search through all texts, the current one last."""
    found = matches(known)
    assert len(found) < SEARCHED
    assert len(proposed) <= nodes
    assert all(len(path) <= depth for path in paths(proposed))
    if found and depth:
        _, number, place = found[0]
        assert proposed[0].token == known[number][place]
    firsts = [node.token for node in proposed if node.parent == ROOT]
    order = list(dict.fromkeys(known[number][place] for _, number, place in found))
    assert firsts == order[: len(firsts)]
    for draft in branches(proposed):
        at = next((number, place) for _, number, place in found if known[number][place] == draft[0])
        assert tuple(known[at[0]][at[1] : at[1] + len(draft)]) == draft
    for first in (node for node in proposed if node.parent == ROOT):
        number = next(number for _, number, place in found if known[number][place] == first.token)
        assert first.source == (SOURCE if number == len(known) - 1 else EARLIER)


@pytest.mark.parametrize("seed", range(12))
def test_a_conversation_that_goes_on_is_cut_or_edited_is_drafted_from_as_if_all_of_it_were_read_anew(seed: int) -> None:
    drafter, known, compared = SuffixDrafter(64), list[Text](), 0
    for turn in turns(seed, words=400):
        text = list(turn.prompt)
        if known and text[: len(known[-1])] == known[-1]:
            del known[-1]  # it goes on
        drafter.begin(text, len(text))
        known.append(text)
        for more in ([], turn.answer[:20], turn.answer[20:]):
            text += more
            proposed = drafter.propose(PLENTY).nodes
            if len(matches(known)) < SEARCHED:
                check(proposed, known, 64, PLENTY.depth)
                compared += bool(proposed)
    assert compared


def test_of_a_text_that_changes_near_its_end_only_the_end_is_read_again() -> None:
    """The rest of it would push out what was said before, and the first token would wait for it."""
    drafter, text = SuffixDrafter(3, capacity=2000), list(range(1000))
    told(drafter, [5000, 5001, 5002, 5003])
    for turn in range(12):
        told(drafter, [*text, 2000 + turn])
    assert drafts(drafter, [*text, 5000, 5001]) == [(5002, 5003)]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=40), min_size=1, max_size=8),
    st.integers(10, 30),
)
def test_after_forgetting_matches_are_still_right(texts: list[Text], capacity: int) -> None:
    """What is proposed did follow those tokens somewhere, and what was said last is not forgotten."""
    drafter = SuffixDrafter(4, capacity)
    for number, text in enumerate(texts):
        told(drafter, text, prompt=1 + len(text) // 2)
        proposed = branches(drafter.propose(PLENTY).nodes)
        said = texts[: number + 1]
        found = matches(said)
        for draft in proposed:
            assert any(tuple(said[which][place : place + len(draft)]) == draft for _, which, place in found)
        latest = [text[-(capacity // 2 - 1) :]]
        if near := matches(latest):
            firsts = {said[which][place] for alike, which, place in found if alike >= near[0][0]}
            assert proposed and proposed[0][0] in firsts


@pytest.mark.parametrize("length", [50, 3000])
def test_memory_is_bounded(length: int) -> None:
    dice, drafter = random.Random(0), SuffixDrafter(8, capacity=2000)

    def tell(tokens: int) -> int:
        for _ in range(0, tokens, length):
            told(drafter, [dice.randrange(5000) for _ in range(length)], prompt=length - 2)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        few, many = tell(6_000), tell(60_000)
    finally:
        tracemalloc.stop()
    assert many < 2 * few
