"""Steps that verify the likeliest guess and ask nobody: the text is the same, and nothing of them is lost."""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

import pytest
import torch

from benchmarks.choices import AutoOnClock, OnClock
from benchmarks.machines import MACHINES
from ladechat.decoder.aside import Observed
from ladechat.decoder.guess_kind import LONGEST
from ladechat.decoder.guess_worth import LONGEST_RIDE, RIDE_SECONDS, GuessWorth
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess
from ladechat.decoder.picker import NO_REST, NO_RIDE, Pick, Pool, Rest, RestPlan, Ridden, RidePlan
from ladechat.decoder.step import Limits
from ladechat.decoder.verify_mask import StepLayout
from tests.tiny import plain, random_model, runner_for, tokens_of

T = TypeVar("T")
R = TypeVar("R")

LOOPS = 0, [5, 6, 7]
"""A model and a prompt behind which it says the same again and again."""


class Rides:
    """Rides for so many steps, in turns with one that asks. `look` is called behind each ride."""

    def __init__(self, steps: int, length: int = 7, look: Callable[[], None] = lambda: None) -> None:
        self._plan, self._due, self._look = RidePlan(steps, length), True, look
        self.ridden: list[Ridden] = []
        self.rides_taken = 0
        self.asked = 0

    def rests(self, pool: Pool) -> RestPlan:
        if self.rides_taken and self._due:
            self._look()
        return NO_REST

    def rested(self, rest: Rest, pool: Pool) -> None:
        raise AssertionError("There was no rest.")

    def rides(self) -> RidePlan:
        self._due = not self._due
        return self._plan if self._due else NO_RIDE

    def rode(self, ridden: Sequence[Ridden]) -> None:
        assert 0 < len(ridden) <= self._plan.steps
        self.rides_taken += 1
        self.ridden += ridden

    def most(self) -> int:
        return 2

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        self.asked += 1
        return Pick(1, 2)


@pytest.mark.parametrize("length", [3, 7])
@pytest.mark.parametrize("steps", [1, 4, 99])
def test_a_ride_verifies_the_likeliest_guess_while_it_is_all_right(steps: int, length: int) -> None:
    model, prompt = random_model(LOOPS[0]), LOOPS[1]
    decoder, picker = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 8, 5)), Rides(steps, length)
    took = list(decoder.run(prompt, Limits(120), picker=picker))
    assert tokens_of(took) == plain(model, prompt, 120)
    ridden = [one.step for one in picker.ridden]
    assert len(took) == picker.asked + len(ridden)
    assert {id(step) for step in ridden} <= {id(step) for step in took}
    assert max(step.slots for step in ridden) == length + 1 == max(len(step.tokens) for step in ridden)
    assert all(len(one.guesses) <= 1 for one in picker.ridden)
    for one in picker.ridden:
        behind_most = bool(one.guesses) and one.guesses[0].context == LONGEST_CONTEXT
        assert (one.step.slots > 1) == behind_most and one.seconds >= one.step.forward_seconds
    going_on = sum(0 < step.slots - 1 < len(step.tokens) for step in ridden)
    assert len(ridden) - going_on <= picker.rides_taken  # what is not all right is the last of its ride
    pools = [step.pool for step in took if step.pool]
    assert pools[-1].lookups == len(took) and all(pool.asked for pool in pools)
    assert pools[-1].hits == sum(bool(pool.candidates) for pool in pools)


def test_behind_a_ride_the_pool_has_learnt_what_came() -> None:
    model, prompt = random_model(LOOPS[0]), LOOPS[1]
    decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 8, 5))
    whole, looks = list(prompt), 0

    def look() -> None:
        nonlocal looks
        looks += 1
        assert set(decoder.pool.ngrams()) == {tuple(whole[start : start + 8]) for start in range(len(whole) - 7)}

    picker = Rides(4, look=look)
    for step in decoder.run(prompt, Limits(80), picker=picker):
        whole += step.tokens
    look()
    assert looks in (picker.rides_taken, picker.rides_taken + 1) and looks > 2


@pytest.mark.parametrize("stopped", [2, 9, 14])
def test_a_text_that_is_stopped_in_the_middle_of_a_ride_is_learnt(stopped: int) -> None:
    model, prompt = random_model(LOOPS[0]), LOOPS[1]
    decoder, picker = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 3, 5)), Rides(99, 2)
    steps = decoder.run(prompt, Limits(200), picker=picker)
    took = [next(steps) for _ in range(stopped)]
    assert isinstance(steps, Generator)
    steps.close()
    assert len(picker.ridden) + picker.asked == stopped
    last = tuple([*prompt, *tokens_of(took)][-3:])
    assert decoder.pool.guesses(last[0], 2, 9)[0].tail == last[1:]


def test_settings_that_change_in_the_middle_of_a_ride_count_from_the_next_step_on() -> None:
    model, prompt = random_model(LOOPS[0]), LOOPS[1]
    decoder, picker = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 8, 5)), Rides(99)
    text = list[int]()
    changed = False  # steps that ask bring three tokens at most
    for step in decoder.run(prompt, Limits(150), picker=picker):
        text += step.tokens
        assert (step.window is not None) == changed
        if len(step.tokens) == 8 and not changed:
            decoder.settings, changed = LookaheadSettings(3, 3, 3), True
    assert changed and text == plain(model, prompt, 150)


@pytest.mark.parametrize("failing", [3, 6, 15])
def test_where_a_pass_of_a_ride_fails_what_came_before_is_learnt_and_the_next_answer_is_right(failing: int) -> None:
    model, prompt = random_model(LOOPS[0]), LOOPS[1]
    runner = runner_for(model)
    decoder, picker = LookaheadDecoder(runner, LookaheadSettings(0, 8, 5)), Rides(99)
    forward, passes = runner.forward, 0

    def fails(layout: StepLayout) -> torch.Tensor:
        nonlocal passes
        passes += 1
        if passes > failing:
            raise RuntimeError("no memory")
        return forward(layout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "forward", fails)
        steps = decoder.run(prompt, Limits(200), picker=picker)
        took = [next(steps) for _ in range(failing)]
        with pytest.raises(RuntimeError, match="no memory"):
            next(steps)
    assert len(picker.ridden) + picker.asked >= len(took)
    whole = [*prompt, *tokens_of(took)]
    assert {tuple(whole[start : start + 8]) for start in range(len(whole) - 7)} <= set(decoder.pool.ngrams())
    assert tokens_of(list(decoder.run(prompt, Limits(80), picker=Rides(3)))) == plain(model, prompt, 80)


def guesses_right(worth: GuessWorth, times: int, tokens: int = LONGEST + 1, right: bool = True) -> None:
    """So many steps, one behind the other, that had one guess, as long as there are, and emitted so many tokens."""
    for _ in range(times):
        offer = worth.offered([Guess((1,) * LONGEST, "accepted", LONGEST_CONTEXT)])
        worth.came((1,) * tokens, right)
        worth.learn(offer, (1,) * LONGEST)


def test_it_rides_where_the_likeliest_guess_was_all_right_for_some_time() -> None:
    worth = GuessWorth(lambda slots: 0.001 + 0.0001 * slots)
    guesses_right(worth, 1)
    assert worth.rides() == NO_RIDE  # seven tokens were foreseen so far
    guesses_right(worth, 1)
    assert worth.rides() == RidePlan(LONGEST_RIDE, LONGEST)
    guesses_right(worth, 1, right=False)  # as in a ride
    assert worth.rides() == NO_RIDE
    guesses_right(worth, 1)
    assert worth.rides().steps


@pytest.mark.parametrize("pass_seconds", [0.001, 0.02, 0.049, 0.3])
def test_a_ride_is_no_longer_than_what_is_learnt_may_wait(pass_seconds: float) -> None:
    worth = GuessWorth(lambda slots: pass_seconds * (1 + 0.01 * slots))
    guesses_right(worth, 9)
    steps = worth.rides().steps
    assert steps == (0 if pass_seconds > 0.045 else min(LONGEST_RIDE, int(RIDE_SECONDS / pass_seconds / 1.08)))


def test_a_ride_verifies_as_much_of_a_guess_as_is_worth_its_slots() -> None:
    worth = GuessWorth({1: 0.001, 2: 0.0011, 3: 0.0012, 4: 0.0013, 8: 0.02}.__getitem__)
    guesses_right(worth, 9)
    assert worth.rides().length == 3


@pytest.mark.parametrize(("tokens", "right"), [(LONGEST, True), (LONGEST + 1, False), (1, False)])
def test_it_asks_where_a_guess_was_wrong_or_not_alone(tokens: int, right: bool) -> None:
    worth = GuessWorth(lambda slots: 0.001 + 0.0001 * slots)
    guesses_right(worth, 3)
    guesses_right(worth, 1, tokens, right)
    assert bool(worth.rides().steps) == right  # a guess may be shorter than the longest


@pytest.mark.parametrize("rested", [True, False])
def test_another_text_begins_without_a_ride_and_so_does_what_follows_a_rest(rested: bool) -> None:
    worth = GuessWorth(lambda slots: 0.001 + 0.0001 * slots)
    guesses_right(worth, 3)
    if rested:
        worth.came_resting(Rest((1,), [0.001], 0.0))
    else:
        worth.begin()
    assert worth.rides() == NO_RIDE


def noted(method: Callable[[T], R], into: list[T]) -> Callable[[T], R]:
    """A method that keeps what it was called with."""

    def keeping(given: T) -> R:
        into.append(given)
        return method(given)

    return keeping


def test_auto_rides_through_what_it_repeats_and_learns_from_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model, prompt, machine = random_model(LOOPS[0]), LOOPS[1], MACHINES["compiled"]
    runner, ridden, learnt = OnClock(runner_for(model), machine), list[Sequence[Ridden]](), list[Observed]()
    with runner.counting():  # what pays hangs on a clock that is made up
        for _ in runner.prefill(prompt):
            pass
        decoder = AutoOnClock(runner, machine)
        monkeypatch.setattr(decoder.tuner, "rode", noted(decoder.tuner.rode, ridden))
        monkeypatch.setattr(decoder.tuner, "_learn_step", noted(decoder.tuner._learn_step, learnt))
        steps = list(decoder.run(prompt, Limits(300)))
        list(decoder.run([5, 6, 7], Limits(0)))  # what was put aside is learnt from when another text begins
    assert tokens_of(steps) == plain(model, prompt, 300)
    of_rides = {id(one.step) for some in ridden for one in some}
    assert len(of_rides) == sum(map(len, ridden)) > 8
    assert {id(one.step) for one in learnt if one.ridden} == of_rides
    assert len(learnt) == sum(step.pool is not None and step.pool.asked for step in steps)
    assert max(len(step.tokens) for step in steps if id(step) in of_rides) > 3
