"""Steps that leave the pool alone: they are those of plain decoding, and behind them nothing is lost."""

from collections.abc import Generator, Sequence

import pytest
import torch

from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess, NGramPool, Tail
from ladechat.decoder.picker import NO_REST, NO_RIDE, Pick, Pool, Rest, RestPlan, Ridden, RidePlan
from ladechat.decoder.step import Limits
from ladechat.decoder.verify_mask import StepLayout
from tests.tiny import demo_model, demo_prompt, plain, runner_for, tokens_of

NEVER = 99


class Rests:
    """Rests for so many steps unless the pool knows so many of the last tokens, and then takes its likeliest guess."""

    def __init__(self, context: int, steps: int, foreseen: Tail = ()) -> None:
        self._context, self._steps, self._foreseen = context, steps, foreseen
        self.came: list[int] = []
        self.looked_back: list[tuple[int, list[Guess]]] = []
        self.offered: list[int] = []

    def rests(self, pool: Pool) -> RestPlan:
        return NO_REST if pool.knows(self._context) else RestPlan(self._steps, self._foreseen)

    def rested(self, rest: Rest, pool: Pool) -> None:
        assert len(rest.tokens) == len(rest.passes) <= self._steps and rest.besides > 0
        self.looked_back = [(place, pool.guesses(2, place)) for place in range(len(rest.tokens))]
        assert all(not g or g[0].context < 2 or pool.known(g[0].context, [place]) for place, g in self.looked_back)
        self.came += rest.tokens

    def rides(self) -> RidePlan:
        return NO_RIDE

    def rode(self, ridden: Sequence[Ridden]) -> None:
        raise AssertionError("There was no ride.")

    def most(self) -> int:
        return 2

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        assert len(guesses) <= 2
        self.offered += [guess.context for guess in guesses[:1]]  # where one more token is wanted there are none
        return Pick(1, 2)


@pytest.mark.parametrize("context", [1, 2, LONGEST_CONTEXT, NEVER])
@pytest.mark.parametrize("steps", [1, 7, 99])
def test_the_pool_is_asked_where_the_last_tokens_were_seen_in_a_row_and_else_steps_are_plain_ones(
    context: int, steps: int
) -> None:
    model, prompt = demo_model(), demo_prompt("Repeat after me: the red fox sees the red fox.")
    decoder, picker = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 8, 5)), Rests(context, steps)
    took = list(decoder.run(prompt, Limits(60), picker=picker))
    assert tokens_of(took) == plain(model, prompt, 60)
    pools = [step.pool for step in took if step.pool]
    drafted = [step for step in took if step.slots > 1]
    assert len(drafted) == len(picker.offered) and all(offered >= context for offered in picker.offered)
    assert bool(drafted) == (context < NEVER and steps < 60)
    assert all(step.pool.asked for step in drafted if step.pool)
    assert pools[-1].lookups == sum(pool.asked for pool in pools)
    assert pools[-1].hits == len(picker.offered)
    assert len(picker.came) == sum(not pool.asked for pool in pools)


def test_behind_a_rest_the_pool_says_what_it_would_have_said_at_each_place_of_it() -> None:
    """It has learnt nothing of the rest, nor of what came after the place."""
    model, prompt = demo_model(), demo_prompt("Repeat after me: the red fox sees the red fox.")
    decoder, picker = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 8, 5)), Rests(NEVER, 99)
    text = tokens_of(list(decoder.run(prompt, Limits(40), picker=picker)))
    assert picker.came == text and [place for place, _ in picker.looked_back] == list(range(40))
    then = NGramPool()
    then.begin_run()
    then.add_all(prompt, 8, "prompt")
    for place, guesses in picker.looked_back:
        before = [*prompt, *text[:place]]
        assert guesses == then.guesses(before[-1], 7, 2, before[-LONGEST_CONTEXT:-1])
    assert any(guesses for _, guesses in picker.looked_back)


@pytest.mark.parametrize("foreseen", [1, 4, 11])
def test_a_rest_ends_early_where_what_was_foreseen_has_come(foreseen: int) -> None:
    model, prompt = demo_model(), demo_prompt("What is the window?")
    text = plain(model, prompt, 40)
    right, wrong = tuple(text[:foreseen]), (*text[: foreseen - 1], text[foreseen - 1] + 1)
    for tail, first in ((right, foreseen), (wrong, 13), ((), 13)):
        picker = Rests(NEVER, 13, tail)
        rested = list[int]()
        steps = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 3, 5)).run(prompt, Limits(40), picker=picker)
        came = list[int]()
        for step in steps:
            if len(picker.came) > sum(rested):
                rested.append(len(picker.came) - sum(rested))
            came += step.tokens
        assert came == text and rested[0] == first


@pytest.mark.parametrize("stopped", [1, 5, 12])
def test_a_text_that_is_stopped_in_the_middle_of_a_rest_is_learnt(stopped: int) -> None:
    model, prompt = demo_model(), demo_prompt("What is the window?")
    decoder, picker = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 3, 5)), Rests(NEVER, 99)
    steps = decoder.run(prompt, Limits(40), picker=picker)
    text = [next(steps).tokens[0] for _ in range(stopped)]
    assert isinstance(steps, Generator)
    steps.close()
    assert picker.came == text
    last = (*prompt, *text)[-3:]
    assert decoder.pool.guesses(last[0], 2, 9)[0].tail == last[1:]


def test_settings_that_change_in_the_middle_of_a_rest_count_from_the_next_step_on() -> None:
    model, prompt = demo_model(), demo_prompt("What is the window?")
    decoder, picker = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 8, 5)), Rests(NEVER, 99)
    text: list[int] = []
    for number, step in enumerate(decoder.run(prompt, Limits(40), picker=picker)):
        text += step.tokens
        assert (step.window is None) == (number <= 4)
        if number == 4:
            decoder.settings = LookaheadSettings(3, 3, 3)
    assert text == plain(model, prompt, 40)


@pytest.mark.parametrize("failing", [0, 1, 6])
def test_where_a_pass_of_a_rest_fails_what_came_before_is_learnt_and_the_next_answer_is_right(failing: int) -> None:
    model, prompt = demo_model(), demo_prompt("What is the window?")
    runner = runner_for(model)
    decoder, picker = LookaheadDecoder(runner, LookaheadSettings(0, 3, 5)), Rests(NEVER, 99)
    forward, passes = runner.forward, 0

    def fails(layout: StepLayout) -> torch.Tensor:
        nonlocal passes
        passes += len(runner.tokens) >= len(prompt) - 1
        if passes == failing + 1:
            raise RuntimeError("no memory")
        return forward(layout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "forward", fails)
        steps = decoder.run(prompt, Limits(40), picker=picker)
        text = [next(steps).tokens[0] for _ in range(failing)]
        with pytest.raises(RuntimeError, match="no memory"):
            next(steps)
    assert picker.came == text
    assert tokens_of(list(decoder.run(prompt, Limits(40), picker=Rests(1, 3)))) == plain(model, prompt, 40)


@pytest.mark.parametrize("accepted", [True, False])
def test_a_text_that_ends_in_the_middle_of_a_rest_is_learnt_once_if_at_all(accepted: bool) -> None:
    model, prompt = demo_model(), demo_prompt("What is the window?")
    text = plain(model, prompt, 40)
    end = next(index for index in range(9, 40) if text[index] not in text[:index])
    decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(0, 3, 5, pool_accepted=accepted))
    steps = list(decoder.run(prompt, Limits(40, {text[end]}), picker=Rests(NEVER, 99)))
    assert tokens_of(steps) == text[: end + 1]
    whole = [*prompt, *text[: end + 1]] if accepted else prompt
    assert set(decoder.pool.ngrams()) == {tuple(whole[start : start + 3]) for start in range(len(whole) - 2)}
