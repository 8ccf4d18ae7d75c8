"""Lookahead decoding at fixed W, N and G: fewer steps, by the slots that it may have.

That it writes what plain decoding writes, greedily and sampled: see tests/test_exactness.py.
"""

import json
import random
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from ladechat import registry
from ladechat.decoder.drafters.ngram_pool import Guess, NGramPool
from ladechat.decoder.drafters.window import WindowDrafter
from ladechat.decoder.loop import Decoder
from ladechat.decoder.policy import FixedPolicy
from ladechat.decoder.step import Limits, Step
from tests.made_up_costs import Curve, dear, free, shared
from tests.tiny import VOCABULARY, demo_model, demo_prompt, plain, random_model, run, runner_for, tokens_of

REFERENCE = Path(__file__).parent.parent / "reference"
MOST_STEPS = {"5,3,5": 468, "7,5,7": 439, "10,5,10": 405, "15,5,15": 381}
PROMPT = [5, 8, 13, 21, 34, 5, 8, 13]
WINDOW_ONLY = {"pool_prompt": False, "pool_accepted": False}


@cache
def demo_prompts() -> list[tuple[list[int], list[int]]]:
    """Prompts for the bundled model and how it answers them."""
    questions = ("Write a Python function that reverses a string.", "What is the n-gram pool?")
    return [(prompt, plain(demo_model(), prompt, 80, [2])) for prompt in map(demo_prompt, questions)]


@pytest.mark.parametrize("settings", [(1, 2, 4), (1, 5, 3), (5, 2, 5), (5, 3, 5), (6, 6, 0), (15, 5, 15)])
def test_the_bundled_model_answers_the_same_in_fewer_steps(settings: tuple[int, int, int]) -> None:
    for prompt, answer in demo_prompts():
        steps = run(registry.lookahead(runner_for(demo_model()), *settings), prompt, 80, [2])
        assert tokens_of(steps) == answer
        assert len(steps) < len(answer)


@pytest.mark.parametrize("seed", range(12))
def test_a_pass_has_the_slots_of_window_and_guesses_at_most(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(dice.randrange(6))
    decoder = registry.lookahead(runner_for(model))
    w, n, g = 5, 3, 5
    steps: list[Step] = []
    for step in decoder.run(PROMPT, Limits(40)):
        assert step.slots <= max(1, (n - 1) * w) + (n - 1) * g
        steps.append(step)
        w, n, g = dice.randint(0, 12), dice.randint(2, 7), dice.randint(0, 10)
        decoder.configure({"window": w, "ngram": n, "guesses": g})
    assert tokens_of(steps) == plain(model, PROMPT, 40)


def test_the_smallest_window_without_guesses_is_plain_decoding_that_teaches_the_pool() -> None:
    prompt, answer = demo_prompts()[0]
    pool = NGramPool()
    steps = run(registry.lookahead(runner_for(demo_model()), 1, 2, 0, pool, **WINDOW_ONLY), prompt, 80, [2])
    assert [step.tokens for step in steps] == [(token,) for token in answer]
    assert {step.slots for step in steps} == {1}
    assert [step.window.fresh for step in steps if step.window] == [(token,) for token in answer]
    assert set(pool.ngrams()) == set(pairwise([prompt[-1], *answer]))


def test_without_a_window_only_guesses_are_verified() -> None:
    prompt, answer = demo_prompts()[0]
    steps = run(registry.lookahead(runner_for(demo_model()), 0, 4, 5), prompt, 80, [2])
    assert tokens_of(steps) == answer and len(steps) < len(answer)
    assert not any(step.window for step in steps)
    assert {source for step in steps if step.draft for source in step.draft.sources} <= {"prompt", "accepted"}


def test_ngrams_of_the_window_alone_are_accepted_and_save_steps() -> None:
    def steps_with(pool: NGramPool) -> list[Step]:
        steps = []
        for prompt, _ in demo_prompts():
            decoder = registry.lookahead(runner_for(demo_model()), 7, 5, 7, pool=pool, **WINDOW_ONLY)
            steps += run(decoder, prompt, 80, [2])
        return steps

    with_pool, without = steps_with(NGramPool()), steps_with(NGramPool(capacity_bytes=0))
    assert tokens_of(with_pool) == tokens_of(without)
    assert "window" in {origin for step in with_pool for origin in step.origins}
    from_pool = {c.source for step in with_pool if step.pool for c in step.pool.candidates if c.matched}
    assert "window" in from_pool and from_pool <= {"window", "earlier"}  # that of the first prompt
    assert len(with_pool) < len(without)


@pytest.mark.parametrize("flags", [(True, True), (True, False), (False, True), (False, False)])
def test_sources_that_are_switched_off_do_not_enter_the_pool(flags: tuple[bool, bool]) -> None:
    prompt, _ = demo_prompts()[0]
    decoder = registry.lookahead(runner_for(demo_model()), pool_prompt=flags[0], pool_accepted=flags[1])
    steps = run(decoder, prompt + prompt, 60)
    seen = {c.source for step in steps if step.pool for c in step.pool.candidates}
    assert ("prompt" in seen, "accepted" in seen) == flags


def test_a_full_match_keeps_the_bonus_token() -> None:
    model, pool = random_model(1), NGramPool()
    answer = plain(model, PROMPT, 10)
    pool.add((PROMPT[-1], *answer[:4]), "prompt")
    first, *_ = run(registry.lookahead(runner_for(model), 1, 5, 4, pool, **WINDOW_ONLY), PROMPT, 10)
    assert list(first.tokens) == answer[:5]
    assert "model" not in first.origins[:4]
    assert first.origins[4] == "model"


def test_a_step_reports_the_verdict_on_every_draft_and_how_far_candidates_matched() -> None:
    model, pool = random_model(1), NGramPool()
    a, b, c, *_ = plain(model, PROMPT, 10)
    wrong = (c + 1) % VOCABULARY
    for tail in [(wrong,), (a, b, wrong), (wrong, a, b)]:
        pool.add((PROMPT[-1], *tail), "prompt")
    step, *_ = run(registry.lookahead(runner_for(model), 1, 4, 2, pool, **WINDOW_ONLY), PROMPT, 10)
    assert step.tokens == (a, b, c)
    assert step.draft is not None and step.pool is not None
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(step.draft.tokens, step.draft.parents, strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), token))
    verdicts = dict(zip(paths, step.draft.verdicts, strict=True))
    assert {path: verdicts[path] for path in [(a,), (a, b), (a, b, wrong)]} == {
        (a,): "accepted",
        (a, b): "accepted",
        (a, b, wrong): "rejected",
    }
    assert verdicts[wrong,] == "rejected"
    assert verdicts[wrong, a] == verdicts[wrong, a, b] == "untested"
    assert [(c.tail, c.tried, c.matched) for c in step.pool.candidates] == [
        ((wrong, a, b), True, 0),
        ((a, b, wrong), True, 2),
    ]


def test_candidates_beyond_the_guess_limit_are_reported_as_not_tried() -> None:
    pool = NGramPool()
    for token in (40, 41, 42):
        pool.add((PROMPT[-1], token), "prompt")
    decoder = registry.lookahead(runner_for(random_model(1)), 1, 2, 1, pool, **WINDOW_ONLY)
    step, *_ = run(decoder, PROMPT, 10)
    assert step.pool is not None
    assert [(c.tail, c.tried) for c in step.pool.candidates] == [((42,), True), ((41,), False), ((40,), False)]


@pytest.mark.parametrize(("curve", "tried"), [(free, True), (dear, False)])
def test_candidates_that_were_not_worth_a_slot_are_reported_as_not_tried(curve: Curve, tried: bool) -> None:
    model, pool = random_model(1), NGramPool()
    answer = plain(model, PROMPT, 4)
    pool.add((PROMPT[-1], *answer[:3]), "prompt")
    step, *_ = run(registry.make("auto", runner_for(model), shared(curve, pool=pool)), PROMPT, 10)
    assert step.pool is not None
    first = next(one for one in step.pool.candidates if one.tail[:1] == (answer[0],))
    assert (first.tried, first.matched > 0, step.slots > 1) == (tried, tried, tried)


@pytest.mark.parametrize("seed", range(6))
def test_a_window_that_was_too_large_for_what_is_left_of_the_context_may_be_narrowed(seed: int) -> None:
    model = random_model(seed)
    decoder = registry.lookahead(runner_for(model, context_length=64), 12, 5, 4)
    steps: list[Step] = []
    for step in decoder.run(PROMPT, Limits(1000)):
        steps.append(step)
        if len(tokens_of(steps)) > 44:  # the positions of W 12, N 5 lie beyond the context by now
            decoder.configure({"window": 2, "ngram": 3})
    assert tokens_of(steps) == plain(model, PROMPT, 56)
    assert steps[0].window is not None
    assert any(step.window is not None and len(step.window.fresh) == 2 for step in steps)


def test_a_window_may_come_and_go_in_the_middle_of_a_text() -> None:
    model = random_model(3)
    decoder = registry.lookahead(runner_for(model), 4, 3, 4)
    steps: list[Step] = []
    for step in decoder.run(PROMPT, Limits(60)):
        steps.append(step)
        decoder.configure({"window": 4 if len(steps) % 6 < 3 else 0})
    assert [step.window is not None for step in steps] == [number % 6 < 3 for number in range(len(steps))]
    assert tokens_of(steps) == plain(model, PROMPT, 60)


class EverySecond(FixedPolicy):
    """Asks drafters in every second step only."""

    def __init__(self) -> None:
        self._steps = 0

    def drafting(self) -> bool:
        self._steps += 1
        return self._steps % 2 == 1


@pytest.mark.parametrize("width", [1, 4])
def test_a_window_begins_at_the_last_token_also_where_passes_went_without_it(width: int) -> None:
    model, pool = random_model(3), NGramPool()
    decoder = Decoder(runner_for(model), [WindowDrafter(pool, width, 3)], EverySecond())
    text = list(PROMPT)
    for number, step in enumerate(decoder.run(PROMPT, Limits(30))):
        assert (step.window is not None) == (number % 2 == 0)
        assert step.window is None or step.window.rows[0][0] == text[-1]
        text += step.tokens
    assert text == PROMPT + plain(model, PROMPT, 30)


@pytest.mark.parametrize("change", [{"window": 7}, {"ngram": 5}, {"guesses": 0}])
def test_parameters_hold_from_the_next_step_on(change: dict[str, int]) -> None:
    decoder = registry.lookahead(runner_for(demo_model()), 4, 3, 4)
    steps = decoder.run(demo_prompts()[1][0], Limits(30))
    next(steps)
    decoder.configure(change)
    after = next(steps)
    now = {"window": 4, "ngram": 3, "guesses": 4, **change}
    assert after.window is not None and after.pool is not None
    assert (len(after.window.fresh), len(after.window.rows)) == (now["window"], now["ngram"] - 1)
    assert sum(candidate.tried for candidate in after.pool.candidates) <= now["guesses"]


def test_another_guess_limit_leaves_the_pool_alone_and_another_ngram_length_adds_ngrams_of_the_prompt() -> None:
    pool = NGramPool()
    decoder = registry.lookahead(runner_for(random_model(1)), 0, 3, 2, pool, pool_accepted=False)
    steps = decoder.run(PROMPT, Limits(10))
    next(steps)
    pool.add((PROMPT[0], 90, 91), "window")
    before = list(pool.ngrams())
    decoder.configure({"guesses": 7})
    next(steps)
    assert list(pool.ngrams()) == before  # the prompt did not enter it a second time
    assert pool.guesses(PROMPT[:1], 2, 9)[0] == Guess((90, 91), "window")
    decoder.configure({"ngram": 5})
    next(steps)
    assert set(pool.ngrams()) == set(before) | {tuple(PROMPT[start : start + 5]) for start in range(len(PROMPT) - 4)}


def test_text_of_the_answer_so_far_is_no_prompt() -> None:
    prompt, answer = demo_prompts()[0]
    pool = NGramPool()
    decoder = registry.lookahead(runner_for(demo_model()), 5, 3, 5, pool, pool_accepted=False)
    list(decoder.run(prompt + answer[:40], Limits(3), generated=40))
    learnt = {ngram for ngram in pool.ngrams() if Guess(ngram[1:], "prompt") in pool.guesses(ngram[:1], 2, 99)}
    assert learnt == {tuple(prompt[start : start + 3]) for start in range(len(prompt) - 2)}


def test_an_answer_that_another_decoder_began_teaches_the_pool_too() -> None:
    model, pool = random_model(3), NGramPool()
    begun = plain(model, PROMPT, 12)
    decoder = registry.lookahead(runner_for(model), 1, 3, 5, pool, pool_prompt=False)
    list(decoder.run(PROMPT + begun, Limits(1), generated=12))
    text = PROMPT[-2:] + begun
    for start in range(len(text) - 2):
        assert Guess(tuple(text[start + 1 : start + 3]), "accepted") in pool.guesses(text[start : start + 1], 2, 99)


@pytest.mark.parametrize(("w", "n", "g"), [(-1, 3, 5), (5, 1, 5), (5, 3, -1)])
def test_impossible_settings_are_refused(w: int, n: int, g: int) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        registry.lookahead(runner_for(random_model(1)), w, n, g)


@pytest.mark.full
def test_fewer_steps_than_the_reference_implementation_needs() -> None:
    """The published method's own code, run on the first checkpoint of this project: see docs/experiments.md."""
    reference = json.loads((REFERENCE / "reference.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(REFERENCE / "checkpoint", dtype=torch.float32).eval()
    counts = dict.fromkeys(MOST_STEPS, 0)
    for settings in MOST_STEPS:
        window, ngram, guesses = map(int, settings.split(","))
        for prompt in reference["prompts"]:
            decoder = registry.lookahead(runner_for(model), window, ngram, guesses)
            steps = run(decoder, prompt["prompt_ids"], len(prompt["greedy_ids"]), [2])
            assert tokens_of(steps) == prompt["greedy_ids"]
            assert len(steps) < prompt["reference_steps"][settings]
            assert max(step.slots for step in steps) <= (ngram - 1) * (window + guesses)
            counts[settings] += len(steps)
    assert all(counts[settings] <= most for settings, most in MOST_STEPS.items()), counts
