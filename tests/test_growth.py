"""The check of an hour's memory fails for a leak, however slow, and for nothing else."""

import random
from collections.abc import Callable

import pytest

from tests.growth import BYTES_AN_HOUR, Sample, added, growth_in_an_hour, most_growth_in_an_hour

MB = 1024 * 1024


def series(value: Callable[[float], float], minutes: float = 60, count: int = 2000) -> list[Sample]:
    """What is measured from turn to turn: a start of 500 MB, the answer under way, and what `value` adds."""
    dice = random.Random(0)
    seconds = 60 * minutes
    times = [seconds * number / count for number in range(count)]
    return [(at, 500 * MB + value(at / seconds) + dice.random() * MB * (dice.random() < 0.3)) for at in times]


def leaks(samples: list[Sample]) -> bool:
    return growth_in_an_hour(samples) > most_growth_in_an_hour(samples)


@pytest.mark.parametrize("minutes", [2, 15, 55])
@pytest.mark.parametrize("place", [0.1, 0.33, 0.5, 0.7, 0.97])
def test_one_step_is_no_leak_wherever_it_is(place: float, minutes: float) -> None:
    assert not leaks(series(lambda at: 30 * MB * (at > place), minutes))


@pytest.mark.parametrize(("minutes", "an_hour"), [(2, 80 * MB), (15, 20 * MB), (55, 12 * MB)])
def test_a_slow_straight_leak_is_found(minutes: float, an_hour: float) -> None:
    assert leaks(series(lambda at: at * minutes / 60 * an_hour, minutes))


def test_a_leak_is_found_with_a_step_in_it_and_is_as_large_as_it_is() -> None:
    samples = series(lambda at: 26 * MB * at + 20 * MB * (at > 0.3))
    assert growth_in_an_hour(samples) == pytest.approx(26 * MB, rel=0.1)


@pytest.mark.parametrize("teeth", [3, 7, 40])
def test_what_fills_and_is_emptied_again_is_no_leak(teeth: int) -> None:
    assert not leaks(series(lambda at: 20 * MB * (at * teeth % 1)))


def test_what_is_freed_is_no_leak_and_neither_is_what_stays_as_it_is() -> None:
    assert not leaks(series(lambda at: -30 * MB * at))
    assert not leaks(series(lambda at: 0.0))


def test_the_longer_one_looks_the_less_is_allowed() -> None:
    allowed = [most_growth_in_an_hour(series(lambda at: 0.0, minutes)) for minutes in (2, 15, 55)]
    assert allowed == sorted(allowed, reverse=True) and allowed[-1] < 1.3 * BYTES_AN_HOUR


def test_what_is_counted_may_come_and_go_and_come_once_for_good() -> None:
    dice = random.Random(0)
    come_and_gone = [(float(turn), 50 + dice.choice((0, 0, 1, 2)) + (turn > 60)) for turn in range(100)]
    assert added(come_and_gone) < 2
    assert added([(at, count + at // 7) for at, count in come_and_gone]) > 10, "one is left with every seventh turn"
