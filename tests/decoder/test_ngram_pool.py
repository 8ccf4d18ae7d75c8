"""The pool: newest first, bounded, and it remembers where an n-gram came from."""

import random
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from ladechat.decoder.drafters.ngram_pool import BYTES_PER_NGRAM, BYTES_PER_TOKEN, Guess, NGramPool
from ladechat.decoder.drafters.pool import PoolDrafter
from tests.drafters.trees import PLENTY
from tests.drafters.turns import turns

tokens = st.integers(0, 4)
ngrams = st.lists(tokens, min_size=2, max_size=5).map(tuple)
sources = st.sampled_from(["window", "prompt", "accepted"])


def tails_and_sources(guesses: list[Guess]) -> list[tuple[tuple[int, ...], str]]:
    return [(guess.tail, guess.source) for guess in guesses]


def test_a_known_ngram_keeps_the_source_that_first_brought_it() -> None:
    pool = NGramPool()
    assert pool.add((1, 2), "prompt")
    assert not pool.add((1, 2), "window")
    assert tails_and_sources(pool.guesses([1], 1, 1)) == [((2,), "prompt")]


def size(ngram: tuple[int, ...]) -> int:
    return BYTES_PER_NGRAM + BYTES_PER_TOKEN * (len(ngram) - 1)


def test_a_text_enters_ngram_by_ngram() -> None:
    pool = NGramPool()
    assert pool.add_all([1, 2, 3, 4], 3, "prompt") == 2
    assert tails_and_sources(pool.guesses([1], 2, 1)) == [((2, 3), "prompt")]
    assert tails_and_sources(pool.guesses([2], 2, 1)) == [((3, 4), "prompt")]
    assert pool.add_all([1, 2], 3, "prompt") == 0


def pool_after(text: list[int], *others: list[int], ngram: int = 3) -> NGramPool:
    """A pool that has read a text, then others."""
    pool = NGramPool()
    for one in (text, *others):
        pool.read(one, len(one), ngram, "prompt")
    return pool


def test_what_was_said_last_is_guessed_first_also_after_the_next_turn_has_begun() -> None:
    """The prompt of a turn says all that was said before once more: that does not make it the latest."""
    pool = pool_after([1, 2, 3])
    pool.add((1, 8, 9), "window")
    pool.read([1, 2, 3, 4], 4, 3, "prompt")
    assert tails_and_sources(pool.guesses([1], 2, 5)) == [((8, 9), "window"), ((2, 3), "prompt")]


@pytest.mark.parametrize("seed", range(10))
def test_a_conversation_that_goes_on_is_cut_or_edited_teaches_what_reading_all_of_it_would(seed: int) -> None:
    drafter, anew = PoolDrafter(NGramPool(), 3), NGramPool()
    for number, turn in enumerate(turns(seed)):
        drafter.configure({"ngram": 3 + number % 2})
        text = list(turn.prompt)
        drafter.begin(text, len(text))
        text += turn.answer
        drafter.propose(PLENTY)
        anew.add_all(text, drafter.ngram, "prompt")
        assert set(drafter.pool.ngrams()) == set(anew.ngrams())


def test_what_was_forgotten_on_purpose_is_read_again() -> None:
    text = [1, 2, 3, 4]
    pool = pool_after(text)
    pool.clear()
    pool.read(text, 4, 3, "prompt")
    assert list(pool.ngrams()) == [(1, 2, 3), (2, 3, 4)]


def test_ngrams_of_the_text_stay_whatever_the_window_brings() -> None:
    """No turn reads them again, so nothing else would bring them back."""
    text = list(range(8))
    pool = NGramPool(capacity_bytes=10 * size((1, 2, 3)))
    pool.read(text, 8, 3, "prompt")
    for first in range(100, 150):
        pool.add((first, 1, 2), "window")
    assert len(pool) == 10 and set(pool_after(text).ngrams()) < set(pool.ngrams())
    another = list(range(50, 58))
    pool.read(another, 8, 3, "prompt")
    for first in range(100, 150):
        pool.add((first, 1, 2), "window")
    assert not set(pool_after(text).ngrams()) & set(pool.ngrams()), "it is not the text any more"


@given(st.lists(st.tuples(ngrams, sources)), st.integers(0, 6), tokens, st.integers(0, 5), st.integers(0, 5))
def test_pool_agrees_with_a_list_of_everything_added(
    added: list[tuple[tuple[int, ...], str]], capacity: int, key: int, length: int, limit: int
) -> None:
    pool = NGramPool(capacity * size((1, 2, 3)))
    history: list[tuple[int, ...]] = []  # by use, the latest last
    for ngram, source in added:
        pool.add(ngram, source)
        history = [known for known in history if known != ngram] + [ngram]
        while sum(map(size, history)) > capacity * size((1, 2, 3)):
            del history[0]
    assert len(pool) == len(history)

    expected: list[tuple[int, ...]] = []
    for ngram in reversed(history):
        tail = ngram[1 : 1 + length]
        if ngram[0] == key and tail and not any(earlier[: len(tail)] == tail for earlier in expected):
            expected.append(tail)
    assert [one.tail for one in pool.guesses([key], length, limit)] == expected[:limit]


def test_what_earlier_runs_taught_is_told_apart() -> None:
    pool = NGramPool()
    pool.add((1, 2), "prompt")
    pool.begin_run()
    pool.add((1, 2), "prompt")
    pool.add((1, 3), "window")
    assert tails_and_sources(pool.guesses([1], 1, 5)) == [((3,), "window"), ((2,), "earlier")]


def test_what_the_answer_itself_has_said_by_now_is_no_longer_an_earlier_ones() -> None:
    pool = NGramPool()
    pool.add((1, 2), "window")
    pool.begin_run()
    assert tails_and_sources(pool.guesses([1], 1, 5)) == [((2,), "earlier")]
    pool.add((1, 2), "accepted")
    assert tails_and_sources(pool.guesses([1], 1, 5)) == [((2,), "accepted")]


@given(st.lists(ngrams), st.lists(tokens, max_size=3), tokens)
def test_the_tokens_in_front_change_the_order_and_at_most_add_what_they_know_themselves(
    added: list[tuple[int, ...]], before: list[int], key: int
) -> None:
    pool = NGramPool()
    for ngram in added:
        pool.add(ngram, "window")
    without = {one.tail for one in pool.guesses([key], 9, 99)}
    asked = pool.guesses([*before, key], 9, 99)
    for tail, _, context in asked:
        seen = (*before[len(before) - context + 1 :], key) if context > 1 else (key,)
        assert tail in without or any(ngram == (*seen, *tail) for ngram in added)
        assert any(ngram[: len(seen) + 1] == (*seen, tail[0]) for ngram in added)
    assert [one.context for one in asked] == sorted((one.context for one in asked), reverse=True)
    assert all(any(tail == one.tail[: len(tail)] for one in asked) for tail in without)


@given(st.lists(ngrams), st.lists(tokens, max_size=3), tokens, st.integers(0, 5), st.integers(0, 7))
def test_guesses_are_those_that_a_search_through_everything_finds(
    added: list[tuple[int, ...]], before: list[int], key: int, length: int, limit: int
) -> None:
    pool = NGramPool()
    pool.add_each(added, "window")
    latest = list(dict.fromkeys(reversed(added)))

    def behind(tokens: tuple[int, ...]) -> list[tuple[int, ...]]:
        return [one[len(tokens) :] for one in latest if one[: len(tokens)] == tokens and len(one) > len(tokens)]

    expected: list[tuple[tuple[int, ...], int]] = []
    for context in range(len(before) + 1, 0, -1):
        for tail in behind((*before, key)[-context:]):
            cut = tail[:length]
            if not any(known[: len(cut)] == cut for known, _ in expected) and cut:
                longer = behind((key, *cut)) if context > 1 and len(cut) < length else []
                expected.append(((cut + longer[0])[:length] if longer else cut, context))
    assert [(one.tail, one.context) for one in pool.guesses([*before, key], length, limit)] == expected[:limit]


@given(st.lists(st.lists(ngrams, max_size=3)), st.integers(1, 6))
def test_a_full_pool_has_the_latest_and_finds_nothing_else(added: list[list[tuple[int, ...]]], room: int) -> None:
    pool = NGramPool(room * size((1, 2, 3, 4, 5)))
    for together in added:
        pool.add_each(together, "window")
    held = list(pool.ngrams())
    latest = list(dict.fromkeys(ngram for together in reversed(added) for ngram in reversed(together)))
    assert held[::-1] == latest[: len(held)] and len(pool) == len(held) >= min(room, len(latest))
    for ngram in latest:
        for count in range(1, len(ngram)):
            begun = ngram[:count]
            deepest = [one.tail[0] for one in pool.guesses(begun, 1, 99) if one.context == count]
            assert set(deepest) == {one[count] for one in held if one[:count] == begun and len(one) > count}


def test_a_full_pool_takes_no_more_memory_than_it_was_given() -> None:
    dice = random.Random(1)
    tracemalloc.start()
    pool = NGramPool(capacity_bytes=500_000)
    for _ in range(4_000):
        pool.add([dice.randrange(1000, 50_000) for _ in range(dice.randint(2, 7))], "window")
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 250 < len(pool) < 750
    assert 0.5 * 500_000 < used < 500_000
