"""What guesses are worth, and where the pool is asked: by what they yielded, and by what steps take."""

import pytest

from ladechat.decoder.guess_kind import LONGEST
from ladechat.decoder.guess_worth import FIRST, NEVER, OPEN_AGAIN, RENEWED, GuessWorth, Pick
from ladechat.decoder.ngram_pool import Guess


def test_a_kind_of_guess_that_is_right_is_taken_and_one_that_is_not_is_left() -> None:
    worth = GuessWorth(lambda slots: 0.01 + 0.001 * slots)
    good, bad = Guess((1,) * LONGEST, "prompt", 2), Guess((2,) * LONGEST, "prompt", 1)
    for _ in range(60):
        worth.learn(worth.offered([good]), (1,) * LONGEST)
        worth.learn(worth.offered([bad]), (1,) * LONGEST)
        worth.took(1, 1, 0.011, 0.0)
    assert worth.pick(worth.offered([good, bad])) == Pick(1, LONGEST)
    assert worth.pick(worth.offered([bad])) == Pick(0, 0)
    assert worth.pick(worth.offered([])) == Pick(0, 0)


def wanted(worth: GuessWorth, steps: int) -> list[int]:
    """Of so many steps, the context that the pool must know to be asked."""
    contexts = list[int]()
    while len(contexts) < steps:
        wants = worth.wants()
        contexts += [wants.context] * wants.steps
        worth.came((), wants.steps)
    return contexts[:steps]


def renew(worth: GuessWorth) -> None:
    """What was worked out before is not kept for long."""
    worth.came((), RENEWED)
    worth.wants()


def test_a_step_with_guesses_is_charged_for_the_plain_ones_that_it_slows_down() -> None:
    worth = GuessWorth(lambda slots: 0.010 if slots == 1 else 0.012)
    for _ in range(60):
        worth.took(4, 2, 0.012, 0.0)
        for after in (0.015, 0.013, 0.011, *[0.010] * 9):
            worth.rested([after], [after])
    renew(worth)
    assert worth.plain_seconds() == pytest.approx(0.010, rel=0.1)
    assert worth.seconds(4) == pytest.approx(0.012 + 0.005 + 0.003 + 0.001, rel=0.15)


def test_steps_with_guesses_one_behind_the_other_are_charged_nothing_more() -> None:
    worth = GuessWorth(lambda slots: 0.010 if slots == 1 else 0.012)
    for _ in range(12):
        worth.took(1, 1, 0.010, 0.0)
    for _ in range(60):
        worth.took(4, 2, 0.012, 0.0)
    renew(worth)
    assert worth.seconds(4) == pytest.approx(0.012)


def test_to_ask_the_pool_is_charged_too_and_where_it_brings_less_hardly_a_step_asks() -> None:
    worth = GuessWorth(lambda slots: 0.010 + 0.001 * slots)
    never, sometimes = Guess((2,) * LONGEST, "prompt", 1), Guess((1,) * LONGEST, "prompt", 2)
    worth.came((), FIRST)
    for _ in range(200):
        worth.learn(worth.offered([never]), (1,) * LONGEST)
        for right in (True, *[False] * 5):
            worth.learn(worth.offered([sometimes]), (int(right),) * LONGEST)
        worth.took(1, 1, 0.0115, 0.0005)
        worth.rested([0.011], [0.011])
    renew(worth)
    assert wanted(worth, 10).count(2) >= 9
    for _ in range(200):
        worth.took(1, 1, 0.021, 0.010)
    renew(worth)
    asked = [context <= 2 for context in wanted(worth, 320)]
    assert 0 < sum(asked) <= 32


def test_all_kinds_are_judged_now_and_then_and_steps_without_the_pool_timed() -> None:
    asks_none = GuessWorth(lambda slots: 0.010 * slots)
    asks_all = GuessWorth(lambda slots: 0.010)
    for worth in (asks_none, asks_all):
        worth.took(1, 1, 0.010, 0.0)
        assert set(wanted(worth, FIRST)) == {1}
    assert set(wanted(asks_none, 100)) == {1, NEVER}
    assert set(wanted(asks_all, 100)) == {1, NEVER}


def test_where_to_ask_costs_nothing_every_step_asks() -> None:
    worth = GuessWorth(lambda slots: 0.010 * slots)
    worth.came((), FIRST)
    for _ in range(10):
        worth.took(1, 1, 0.010, 0.0)
        worth.rested([0.010], [0.010])
    renew(worth)
    assert set(wanted(worth, 30)) == {1}


def test_one_pause_of_the_machine_does_not_end_guessing() -> None:
    worth = GuessWorth(lambda slots: 0.010 + 0.0005 * slots)
    good = Guess((1,) * LONGEST, "prompt", 2)
    for _ in range(30):
        worth.learn(worth.offered([good]), (1,) * LONGEST)
        worth.took(1, 1, 0.0105, 0.0)
    worth.took(8, 8, 0.5, 0.49)
    renew(worth)
    assert worth.pick(worth.offered([good])).number == 1


def test_one_pause_of_the_machine_does_not_make_the_pool_be_asked_at_every_step() -> None:
    worth = GuessWorth(lambda slots: 0.010 * slots)
    worth.came((), FIRST)
    for _ in range(10):
        worth.took(1, 1, 0.012, 0.002)
        worth.rested([0.0105] * 30, [0.010] * 30)
    plain = worth.plain_seconds()
    worth.rested([0.0105] * 29 + [0.5], [0.010] * 30)
    assert worth.plain_seconds() == pytest.approx(plain, rel=0.05)
    worth.rested([0.0105] * 29 + [0.5], [0.010] * 29 + [0.499])
    assert worth.plain_seconds() == pytest.approx(plain, rel=0.05)
    renew(worth)
    assert sum(context == 1 for context in wanted(worth, 320)) <= 10


def test_what_guesses_cost_besides_is_open_again_after_a_long_time_without_any() -> None:
    worth = GuessWorth(lambda slots: 0.010)
    for _ in range(20):
        worth.took(8, 1, 0.014, 0.004)
    assert worth.seconds(8) == pytest.approx(0.014)
    for _ in range(OPEN_AGAIN):
        worth.took(1, 1, 0.010, 0.0)
    renew(worth)
    assert worth.seconds(8) == pytest.approx(0.010)


def test_when_passes_become_faster_what_was_timed_is_forgotten_and_what_guesses_yield_is_not() -> None:
    cost = {"pass": 0.010}
    worth = GuessWorth(lambda slots: cost["pass"])
    good = Guess((1,) * LONGEST, "prompt", 2)
    for _ in range(50):
        worth.learn(worth.offered([good]), (1,) * LONGEST)
        worth.took(1, 1, 0.012, 0.002)
    assert worth.seconds(1) == pytest.approx(0.012)
    cost["pass"] = 0.002
    worth.forget_times()
    assert worth.seconds(1) == pytest.approx(0.002)
    assert worth.pick(worth.offered([good])) == Pick(1, LONGEST)
