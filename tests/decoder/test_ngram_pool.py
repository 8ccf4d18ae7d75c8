"""The pool: newest first, bounded, and it remembers where an n-gram came from."""

from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.ngram_pool import NGramPool

tokens = st.integers(0, 4)
ngrams = st.lists(tokens, min_size=2, max_size=5).map(tuple)
sources = st.sampled_from(["window", "prompt", "accepted"])


def test_the_latest_used_ngram_is_guessed_first() -> None:
    pool = NGramPool()
    pool.add((1, 2, 3), "window")
    pool.add((1, 4, 5), "prompt")
    assert pool.guesses(1, 2, 5) == [((4, 5), "prompt"), ((2, 3), "window")]
    pool.add((1, 2, 3), "accepted")
    assert pool.guesses(1, 2, 5) == [((2, 3), "window"), ((4, 5), "prompt")]


def test_a_known_ngram_keeps_the_source_that_first_brought_it() -> None:
    pool = NGramPool()
    assert pool.add((1, 2), "prompt")
    assert not pool.add((1, 2), "window")
    assert pool.guesses(1, 1, 1) == [((2,), "prompt")]


def test_the_least_recently_used_ngram_leaves_first() -> None:
    pool = NGramPool(capacity=2)
    pool.add((1, 2), "window")
    pool.add((3, 4), "window")
    pool.add((1, 2), "window")
    pool.add((5, 6), "window")
    assert pool.guesses(3, 1, 1) == []
    assert pool.guesses(1, 1, 1) and pool.guesses(5, 1, 1)


def test_a_text_enters_ngram_by_ngram() -> None:
    pool = NGramPool()
    assert pool.add_all([1, 2, 3, 4], 3, "prompt") == 2
    assert pool.guesses(1, 2, 1) == [((2, 3), "prompt")]
    assert pool.guesses(2, 2, 1) == [((3, 4), "prompt")]
    assert pool.add_all([1, 2], 3, "prompt") == 0


def test_a_guess_that_another_begins_with_is_left_out() -> None:
    pool = NGramPool()
    pool.add((1, 2), "window")
    pool.add((1, 2, 3), "window")
    assert pool.guesses(1, 4, 5) == [((2, 3), "window")]


def test_the_successor_is_the_token_that_followed_last() -> None:
    pool = NGramPool()
    assert pool.successor(1) is None
    pool.add_all([1, 2, 1, 3], 2, "prompt")
    assert pool.successor(1) == 3


@given(st.lists(st.tuples(ngrams, sources)), st.integers(0, 6), tokens, st.integers(0, 5), st.integers(0, 5))
def test_pool_agrees_with_a_list_of_everything_added(
    added: list[tuple[tuple[int, ...], str]], capacity: int, key: int, length: int, limit: int
) -> None:
    pool = NGramPool(capacity)
    history: list[tuple[int, ...]] = []  # by use, the latest last
    for ngram, source in added:
        pool.add(ngram, source)  # type: ignore[arg-type]
        history = [known for known in history if known != ngram] + [ngram]
        history = history[-capacity:] if capacity else []
    assert len(pool) == len(history)

    expected: list[tuple[int, ...]] = []
    for ngram in reversed(history):
        tail = ngram[1 : 1 + length]
        if ngram[0] == key and tail and not any(earlier[: len(tail)] == tail for earlier in expected):
            expected.append(tail)
    assert [tail for tail, _ in pool.guesses(key, length, limit)] == expected[:limit]


def test_a_cleared_pool_knows_nothing() -> None:
    pool = NGramPool()
    pool.add_all([1, 2, 3], 2, "prompt")
    pool.clear()
    assert len(pool) == 0
    assert pool.guesses(1, 1, 1) == []
