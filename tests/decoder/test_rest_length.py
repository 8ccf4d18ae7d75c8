"""How long the pool is left alone: what is done behind a rest, weighed against what is missed in it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.rest_length import RestLength

LONGEST = 32
NEVER_ASK = 1.0
"""Seconds that it takes to ask, far too many."""


def seen(*, behind: float, saved: float, apart: int, stretches: int = 40) -> RestLength:
    """Stretches of one step of two tokens, so many plain ones apart; `saved` is of a token."""
    length = RestLength()
    for _ in range(stretches):
        length.plain(apart)
        length.took_behind(behind)
        length.guessed(2, 2 * saved)
    return length


def test_nothing_is_said_before_all_of_it_was_seen() -> None:
    length = RestLength()
    for _ in range(3):
        assert length.best(NEVER_ASK, LONGEST) is None
        length.took_behind(0.001)
        length.guessed(2, 0.001)
    length.plain(31)
    assert length.best(NEVER_ASK, LONGEST) is None
    length.plain(2)
    assert length.best(NEVER_ASK, LONGEST) is not None


def test_where_guesses_save_nothing_the_longest_is_best() -> None:
    assert seen(behind=0.001, saved=0.0, apart=3).best(NEVER_ASK, LONGEST) == LONGEST
    assert seen(behind=0.001, saved=-0.01, apart=3).best(NEVER_ASK, LONGEST) == LONGEST


@given(behind=st.floats(1e-5, 1e-2), saved=st.floats(1e-5, 1e-2), apart=st.integers(2, 30), longest=st.integers(1, 64))
def test_no_other_length_costs_less(behind: float, saved: float, apart: int, longest: int) -> None:
    best = seen(behind=behind, saved=saved, apart=apart).best(NEVER_ASK, longest)
    assert best is not None

    def cost(steps: int) -> float:
        return behind / steps + saved / apart * steps / 2

    least = min(range(1, longest + 1), key=cost)
    # The rate at which stretches begin fades a little with every plain step, and lengths are whole numbers.
    assert 1 <= best <= longest and cost(best) <= 1.1 * cost(least) and abs(best - least) <= 1 + 0.15 * least


def test_where_asking_costs_less_than_any_rest_it_asks_at_each_step() -> None:
    length = seen(behind=0.001, saved=0.001, apart=4)
    price = 2 * math.sqrt(0.001 * 0.001 / 4 / 2)
    assert length.best(0.8 * price, LONGEST) == 0
    assert length.best(1.2 * price, LONGEST) == pytest.approx(math.sqrt(8), abs=1)


def test_what_is_lost_behind_it_counts_as_if_it_took_longer() -> None:
    short, long = seen(behind=0.001, saved=0.001, apart=4), seen(behind=0.004, saved=0.001, apart=4)
    assert short.best(NEVER_ASK, LONGEST, lost=3.0) == long.best(NEVER_ASK, LONGEST) != short.best(NEVER_ASK, LONGEST)


def test_guesses_that_were_wrong_begin_no_stretch() -> None:
    length = seen(behind=0.001, saved=0.001, apart=10)
    for _ in range(20):
        length.plain(10)
        length.guessed(1, 0.001)
    more = seen(behind=0.001, saved=0.001, apart=10, stretches=60)
    longer, usual = length.best(NEVER_ASK, LONGEST), more.best(NEVER_ASK, LONGEST)
    assert longer is not None and usual is not None and longer > usual


def test_a_stretch_begins_once_however_long_it_is() -> None:
    long, short = RestLength(), seen(behind=0.001, saved=0.001, apart=10)
    for _ in range(40):
        long.plain(10)
        long.took_behind(0.001)
        for _ in range(5):
            long.guessed(2, 0.002)
    assert long.best(NEVER_ASK, LONGEST) == short.best(NEVER_ASK, LONGEST)
