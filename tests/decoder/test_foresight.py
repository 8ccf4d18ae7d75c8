"""How much of a text the pool has foreseen, and what steps take: learnt from many steps as from one after the other."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.foresight import Foresight
from ladechat.decoder.means import REMEMBERED, SETTLING, Aftermath
from ladechat.decoder.ngram_pool import Guess

TOKENS = st.lists(st.integers(0, 1), max_size=12).map(tuple)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=7).map(tuple), TOKENS, st.data())
def test_steps_of_plain_decoding_say_together_what_they_say_one_by_one(
    tail: tuple[int, ...], came: tuple[int, ...], data: st.DataObject
) -> None:
    together, one_by_one = Foresight(), Foresight()
    cut = data.draw(st.integers(0, len(came)))
    for foresight in (together, one_by_one):
        foresight.look([Guess(tail, "prompt")])
    for part in (came[:cut], came[cut:]):
        if part:
            together.take(part, len(part))
        for token in part:
            one_by_one.take((token,))
    assert (together.count, together.ahead) == (one_by_one.count, one_by_one.ahead)


def test_the_token_behind_a_guess_that_was_verified_was_not_foreseen_and_those_before_it_were() -> None:
    foresight = Foresight()
    foresight.look([Guess((1, 2, 3), "prompt")])
    foresight.take((1, 2, 3, 9))
    assert (foresight.count, foresight.ahead) == (3, ())
    foresight.look([Guess((4, 5), "prompt")])
    foresight.take((4,))
    assert (foresight.count, foresight.ahead) == (4, (5,))
    foresight.take((6,))
    assert (foresight.count, foresight.ahead) == (0, ())


@given(st.lists(st.floats(0.9, 1.4), min_size=1, max_size=40), st.data())
def test_what_follows_a_step_with_guesses_hangs_on_no_partition(passes: list[float], data: st.DataObject) -> None:
    together, one_by_one = settled(), settled()
    for aftermath in (together, one_by_one):
        aftermath.disturb(0.5)
    cut = data.draw(st.integers(0, len(passes)))
    together.add(passes[:cut])
    together.add(passes[cut:])
    for seconds in passes:
        one_by_one.add([seconds])
    assert abs(together.lost - one_by_one.lost) < 1e-9
    assert abs(together.settled.value - one_by_one.settled.value) < 1e-9


def settled(assumed: float = 0.0) -> Aftermath:
    """Behind plain passes of a second each."""
    aftermath = Aftermath(lambda: assumed)
    aftermath.add([1.0] * (SETTLING + 1))
    return aftermath


@pytest.mark.parametrize("least", [0.1, 0.5])
@pytest.mark.parametrize("lost", [0.0, 0.3, 1.2])
@pytest.mark.parametrize("assumed", [0.0, 0.7])
def test_what_is_lost_is_learnt_whatever_was_assumed(lost: float, assumed: float, least: float) -> None:
    """After half of what was done something else is done before plain passes have settled."""
    aftermath, dice = settled(assumed), random.Random(0)
    assert aftermath.lost == assumed
    for number in range(300):
        seconds = dice.uniform(least + 0.01, 1.5 * least)
        aftermath.disturb(seconds)
        aftermath.add([1.0 + lost * seconds, *[1.0] * (SETTLING * (number % 2))])
    assert abs(aftermath.lost - lost) < 0.05


@pytest.mark.parametrize("passes", [2, 5])
def test_what_takes_little_time_keeps_plain_passes_from_settling_no_longer(passes: int) -> None:
    """As on a machine where passes take long, and rests are short therefore."""
    aftermath = Aftermath(lambda: 0.5)
    for _ in range(20):
        aftermath.add([1.0] * passes)
        aftermath.disturb(0.05)
    assert aftermath.settled.weight > 10 and aftermath.lost == 0.5
    for _ in range(30):
        aftermath.disturb(0.3)
        aftermath.add([1.3, *[1.0] * (passes - 1)])
        for _ in range(SETTLING):
            aftermath.disturb(0.05)
            aftermath.add([1.0] * passes)
    assert aftermath.lost > 0.7


def test_where_plain_passes_never_settle_it_is_not_known_for_long_what_settled_ones_take() -> None:
    aftermath = settled()
    for _ in range(3 * REMEMBERED // SETTLING):
        aftermath.disturb(0.5)
        aftermath.add([3.0] * (SETTLING - 1))
    assert not aftermath.settled.weight


def test_what_came_before_a_text_is_not_what_its_first_passes_are_slow_for() -> None:
    aftermath = settled()
    for _ in range(30):
        aftermath.begin()
        aftermath.add([3.0] * SETTLING)
        aftermath.add([1.0] * 3)
        aftermath.disturb(0.5)
        aftermath.add([1.0] * SETTLING)
    assert aftermath.lost == 0
    assert aftermath.settled.value == 1.0
