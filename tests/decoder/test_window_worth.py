"""What a window adds: measured beside what the same steps would have emitted without it, and hoped of the others."""

import pytest

from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.window_worth import FORGOTTEN, HOPE, WITH_WINDOW, WindowWorth, slots_of_window

SMALL, *_, LARGE = WITH_WINDOW


def expected(worth: WindowWorth, settings: LookaheadSettings, now: int = 0, usual: float = 1.0) -> float:
    return worth.adds(settings, usual, now)[0]


def tried(adds: int, steps: int = 60) -> WindowWorth:
    worth = WindowWorth()
    for now in range(steps):
        worth.took(SMALL, 8, 0.001, now)
        worth.learn(SMALL, 1 + adds, 1, usual=1.0)
    return worth


def test_larger_windows_are_hoped_to_add_more_and_less_where_guesses_bring_much() -> None:
    worth = WindowWorth()
    assert expected(worth, SMALL) < expected(worth, LARGE) == pytest.approx(4 * HOPE)
    assert expected(worth, LARGE, usual=4.0) == pytest.approx(HOPE)


def test_what_was_seen_counts_the_more_the_more_often() -> None:
    assert expected(tried(1, steps=5), SMALL) < expected(tried(1, steps=50), SMALL) < 1.0
    assert expected(tried(0, steps=50), SMALL) < 0.1 * HOPE


def test_from_one_window_the_others_are_hoped_for() -> None:
    before = expected(WindowWorth(), LARGE)
    assert expected(tried(1), LARGE) > 2 * before
    assert expected(tried(0), LARGE) < before / 2


def test_a_window_is_never_expected_to_take_tokens_away_before_it_was_tried() -> None:
    assert expected(tried(-1), LARGE) == 0.0
    assert expected(tried(-1), SMALL) < 0.0


def test_hope_is_left_and_fades_as_a_window_is_tried() -> None:
    fresh, known = WindowWorth(), tried(0, steps=60)
    gaps = [at_best - likely for likely, at_best in (one.adds(SMALL, 1.0, 60) for one in (fresh, known))]
    assert gaps[0] > 2 * gaps[1] > 0


def test_after_a_long_time_without_it_a_window_is_open_again() -> None:
    worth = tried(0)
    assert worth.known(SMALL, 59 + FORGOTTEN - 1) and not worth.known(SMALL, 59 + FORGOTTEN)
    assert not worth.known(LARGE, 59)
    later = 59 + FORGOTTEN
    assert worth.adds(SMALL, 1.0, later)[1] - worth.adds(SMALL, 1.0, later - 1)[1] > HOPE / 2
    worth.took(SMALL, 8, 0.001, later)
    worth.learn(SMALL, 3, 1, usual=1.0)
    assert worth.adds(SMALL, 1.0, later)[0] > 0.1  # what it added long ago does not count


def test_slots_and_times_are_those_of_its_steps_once_there_are_any() -> None:
    worth = WindowWorth()
    assert worth.slots(SMALL, 3.0, 0) == slots_of_window(SMALL) + 3.0 == 7.0
    assert worth.besides() is None
    worth.took(SMALL, 9, 0.002, 0)
    assert worth.slots(SMALL, 3.0, 1) == 9 and worth.besides() == 0.002
    worth.forget_times()
    assert worth.slots(SMALL, 3.0, 1) == 9 and worth.besides() is None
    assert worth.slots(SMALL, 3.0, FORGOTTEN) == 7.0
