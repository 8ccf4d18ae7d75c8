"""Lookahead decoding writes what plain decoding writes, in fewer steps."""

import json
import random
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from ladechat.decoder.autoregressive import AutoregressiveDecoder
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.ngram_pool import NGramPool
from ladechat.decoder.step import Limits, Step
from tests.tiny import VOCABULARY, demo_model, demo_prompt, generated, plain, random_model, run, runner_for, tokens_of

REFERENCE = Path(__file__).parent.parent / "reference"
PROMPT = [5, 8, 13, 21, 34, 5, 8, 13]
WINDOW_ONLY = {"pool_prompt": False, "pool_accepted": False}


def random_settings(dice: random.Random) -> LookaheadSettings:
    return LookaheadSettings(
        window=dice.randint(0, 12),
        ngram=dice.randint(2, 7),
        guesses=dice.randint(0, 10),
        pool_prompt=dice.random() < 0.5,
        pool_accepted=dice.random() < 0.5,
        longest_guess=dice.choice([0, 0, 1, 4, 9]),
    )


def check_a_random_case(seed: int) -> None:
    """A random model, prompt, W, N, G, limit, end-of-text ids; settings change mid-way in half of the cases."""
    dice = random.Random(seed)
    model = random_model(dice.randrange(6), num_key_value_heads=dice.choice([1, 2, 4]))
    prompt = [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 30))]
    limit, eos = dice.randint(1, 60), [dice.randrange(VOCABULARY) for _ in range(dice.randint(0, 3))]
    decoder = LookaheadDecoder(runner_for(model, chunk=dice.randint(1, 40)), random_settings(dice))
    written: list[int] = []
    changing = dice.random() < 0.5
    for step in decoder.run(prompt, Limits(limit, frozenset(eos))):
        written.extend(step.tokens)
        now = decoder.settings
        assert step.slots <= (now.ngram - 1) * now.window + (now.text_ngram - 1) * now.guesses + 1
        if changing and dice.random() < 0.3:
            decoder.settings = random_settings(dice)
    assert written == plain(model, prompt, limit, eos), f"seed {seed}"


@pytest.mark.parametrize("seed", range(24))
def test_output_equals_plain_decoding(seed: int) -> None:
    check_a_random_case(seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 500))
def test_output_equals_plain_decoding_in_many_more_cases(seed: int) -> None:
    check_a_random_case(seed)


def test_plain_decoding_equals_generate() -> None:
    model = random_model(3)
    assert plain(model, PROMPT, 40) == generated(model, PROMPT, 40)


def test_float64_output_equals_plain_decoding() -> None:
    model = random_model(7, hidden_size=24).double()
    settings = LookaheadSettings(8, 5, 8)
    assert tokens_of(run(LookaheadDecoder(runner_for(model), settings), PROMPT, 60)) == plain(model, PROMPT, 60)


@cache
def demo_prompts() -> list[tuple[list[int], list[int]]]:
    """Prompts for the bundled model and how it answers them."""
    questions = ("Write a Python function that reverses a string.", "What is the n-gram pool?")
    return [(prompt, plain(demo_model(), prompt, 80, [2])) for prompt in map(demo_prompt, questions)]


@pytest.mark.parametrize("settings", [(1, 2, 4), (1, 5, 3), (5, 2, 5), (5, 3, 5), (6, 6, 0), (15, 5, 15)])
def test_the_bundled_model_answers_the_same_in_fewer_steps(settings: tuple[int, int, int]) -> None:
    for prompt, answer in demo_prompts():
        steps = run(LookaheadDecoder(runner_for(demo_model()), LookaheadSettings(*settings)), prompt, 80, [2])
        assert tokens_of(steps) == answer
        assert len(steps) < len(answer)


def test_the_smallest_window_without_guesses_is_plain_decoding() -> None:
    prompt, answer = demo_prompts()[0]
    steps = run(LookaheadDecoder(runner_for(demo_model()), LookaheadSettings(1, 2, 0)), prompt, 80, [2])
    assert [step.tokens for step in steps] == [(token,) for token in answer]
    assert {step.slots for step in steps} == {1}


def test_ngrams_of_the_window_alone_are_accepted_and_save_steps() -> None:
    def steps_with(pool: NGramPool) -> list[Step]:
        steps = []
        for prompt, _ in demo_prompts():
            decoder = LookaheadDecoder(runner_for(demo_model()), LookaheadSettings(7, 5, 7, **WINDOW_ONLY))
            decoder.pool = pool
            steps += run(decoder, prompt, 80, [2])
        return steps

    with_pool, without = steps_with(NGramPool()), steps_with(NGramPool(capacity_bytes=0))
    assert tokens_of(with_pool) == tokens_of(without)
    assert "window" in {origin for step in with_pool for origin in step.origins}
    from_pool = {c.source for step in with_pool if step.pool for c in step.pool.candidates if c.matched}
    assert "window" in from_pool and from_pool <= {"window", "earlier"}  # that of the first prompt
    assert len(with_pool) < len(without)


def test_sources_that_are_switched_off_do_not_enter_the_pool() -> None:
    for flags in [(True, True), (True, False), (False, True), (False, False)]:
        prompt, _ = demo_prompts()[0]
        settings = LookaheadSettings(5, 3, 5, *flags)
        steps = run(LookaheadDecoder(runner_for(demo_model()), settings), prompt + prompt, 60)
        seen = {c.source for step in steps if step.pool for c in step.pool.candidates}
        assert ("prompt" in seen, "accepted" in seen) == flags


def test_a_full_match_keeps_the_bonus_token() -> None:
    model = random_model(1)
    answer = plain(model, PROMPT, 10)
    decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(1, 5, 4, **WINDOW_ONLY))
    decoder.pool.add((PROMPT[-1], *answer[:4]), "prompt")
    first = next(iter(decoder.run(PROMPT, Limits(10))))
    assert list(first.tokens) == answer[:5]
    assert "model" not in first.origins[:4]
    assert first.origins[4] == "model"


def test_a_step_reports_the_verdict_on_every_draft_and_how_far_candidates_matched() -> None:
    model = random_model(1)
    a, b, c, *_ = plain(model, PROMPT, 10)
    wrong = (c + 1) % VOCABULARY
    decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(1, 4, 2, **WINDOW_ONLY))
    for tail in [(wrong,), (a, b, wrong), (wrong, a, b)]:
        decoder.pool.add((PROMPT[-1], *tail), "prompt")
    step = next(iter(decoder.run(PROMPT, Limits(10))))
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
    decoder = LookaheadDecoder(runner_for(random_model(1)), LookaheadSettings(1, 2, 1, **WINDOW_ONLY))
    for token in (40, 41, 42):
        decoder.pool.add((PROMPT[-1], token), "prompt")
    step = next(iter(decoder.run(PROMPT, Limits(10))))
    assert step.pool is not None
    assert [(c.tail, c.tried) for c in step.pool.candidates] == [((42,), True), ((41,), False), ((40,), False)]


def test_any_of_several_end_of_text_ids_ends_the_run_inside_a_draft() -> None:
    model = random_model(1)
    answer = plain(model, PROMPT, 10)
    for place in range(5):
        ends = [answer[place], 96]
        first = answer.index(answer[place])
        decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(4, 6, 4))
        decoder.pool.add((PROMPT[-1], *answer[:5]), "prompt")
        assert tokens_of(run(decoder, PROMPT, 10, ends)) == answer[: first + 1]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_no_more_tokens_than_asked_for(limit: int) -> None:
    model = random_model(1)
    decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(4, 6, 4))
    decoder.pool.add((PROMPT[-1], *plain(model, PROMPT, 5)), "prompt")
    assert tokens_of(run(decoder, PROMPT, limit)) == plain(model, PROMPT, limit)


@pytest.mark.parametrize("decoder_class", [LookaheadDecoder, AutoregressiveDecoder])
def test_a_run_fills_the_context_to_its_end_and_no_slot_lies_beyond(
    decoder_class: type[LookaheadDecoder] | type[AutoregressiveDecoder],
) -> None:
    model = random_model(2)
    runner = runner_for(model, context_length=48)
    decoder = decoder_class(runner)
    if isinstance(decoder, LookaheadDecoder):
        decoder.settings = LookaheadSettings(9, 5, 6)
    written = tokens_of(run(decoder, PROMPT, 1000))  # the runner raises on a slot beyond the context
    assert len(PROMPT) + len(written) == 48
    assert written == plain(model, PROMPT, 1000)[: len(written)]


@pytest.mark.parametrize("seed", range(6))
def test_a_window_that_was_too_large_for_the_rest_of_the_context_may_be_narrowed(seed: int) -> None:
    model = random_model(seed)
    decoder = LookaheadDecoder(runner_for(model, context_length=64), LookaheadSettings(12, 5, 4))
    written: list[int] = []
    for step in decoder.run(PROMPT, Limits(1000)):
        written.extend(step.tokens)
        if len(written) > 44:  # 12 + 5 positions ahead lie beyond the context by now
            decoder.settings = LookaheadSettings(2, 3, 4)
    assert written == plain(model, PROMPT, 56)


def test_changing_the_guess_limit_leaves_the_order_of_the_pool_alone() -> None:
    decoder = LookaheadDecoder(runner_for(random_model(1)), LookaheadSettings(1, 3, 2, pool_accepted=False))
    steps = decoder.run(PROMPT, Limits(10))
    next(steps)
    before = [decoder.pool.guesses(key, 2, 9) for key in range(VOCABULARY)]
    learnt_since = LookaheadSettings(1, 3, 7, pool_accepted=False)
    decoder.settings = learnt_since
    key = PROMPT[0]
    decoder.pool.add((key, 90, 91), "window")
    next(steps)
    assert decoder.pool.guesses(key, 2, 9)[0] == ((90, 91), "window", 1)
    assert before[key]


def test_text_of_the_answer_so_far_is_no_prompt() -> None:
    prompt, answer = demo_prompts()[0]
    decoder = LookaheadDecoder(runner_for(demo_model()), LookaheadSettings(5, 3, 5, pool_accepted=False))
    list(decoder.run(prompt + answer[:40], Limits(3), generated=40))
    learnt = {source for token in answer[10:38] for _, source, _ in decoder.pool.guesses(token, 2, 99)}
    in_prompt = {tuple(prompt[i : i + 3]) for i in range(len(prompt) - 2)}
    from_prompt = [
        (token, *tail)
        for token in range(3072)
        for tail, source, _ in decoder.pool.guesses(token, 2, 99)
        if source == "prompt"
    ]
    assert learnt and set(from_prompt) == in_prompt


def test_an_answer_that_another_decoder_began_teaches_the_pool_too() -> None:
    model = random_model(3)
    begun = plain(model, PROMPT, 12)
    decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(1, 3, 5, pool_prompt=False))
    list(decoder.run(PROMPT + begun, Limits(1), generated=12))
    text = PROMPT[-2:] + begun
    for start in range(len(text) - 2):
        assert (tuple(text[start + 1 : start + 3]), "accepted", 1) in decoder.pool.guesses(text[start], 2, 99)


def test_a_stopped_run_leaves_a_cache_that_the_next_one_goes_on_from() -> None:
    model = random_model(4)
    runner = runner_for(model)
    decoder = LookaheadDecoder(runner, LookaheadSettings(5, 4, 5))
    steps = decoder.run(PROMPT, Limits(60))
    written = [token for _ in range(6) for token in next(steps).tokens]
    assert isinstance(steps, Generator)
    steps.close()
    assert list(runner.tokens) == PROMPT + written[:-1]
    continued = tokens_of(run(AutoregressiveDecoder(runner), PROMPT + written, 20))
    assert written + continued == plain(model, PROMPT, len(written) + 20)


def test_log_probabilities_are_those_of_a_plain_pass() -> None:
    model = random_model(5)
    steps = run(LookaheadDecoder(runner_for(model), LookaheadSettings(5, 4, 5)), PROMPT, 30)
    text = PROMPT + tokens_of(steps)
    with torch.inference_mode():
        expected = model(torch.tensor([text])).logits[0].log_softmax(-1)
    places = range(len(PROMPT) - 1, len(text) - 1)
    reported = [value for step in steps for value in step.logprobs]
    assert reported == pytest.approx([float(expected[i, text[i + 1]]) for i in places], abs=1e-4)


@pytest.mark.parametrize(("w", "n", "g"), [(-1, 3, 5), (5, 1, 5), (5, 3, -1)])
def test_impossible_settings_are_refused(w: int, n: int, g: int) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        LookaheadSettings(w, n, g)
    with pytest.raises(ValueError, match="longest guess must be at least 0"):
        LookaheadSettings(longest_guess=-1)


@pytest.mark.full
def test_fewer_steps_than_the_reference_implementation_needs() -> None:
    """The published method's own code, run on the first checkpoint of this project: see docs/experiments.md."""
    reference = json.loads((REFERENCE / "reference.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(REFERENCE / "checkpoint", dtype=torch.float32).eval()
    for settings, reference_steps in reference["total"]["reference_steps"].items():
        window, ngram, guesses = map(int, settings.split(","))
        count = 0
        for prompt in reference["prompts"]:
            decoder = LookaheadDecoder(runner_for(model), LookaheadSettings(window, ngram, guesses))
            steps = run(decoder, prompt["prompt_ids"], len(prompt["greedy_ids"]), [2])
            assert tokens_of(steps) == prompt["greedy_ids"]
            assert len(steps) < prompt["reference_steps"][settings]
            assert max(step.slots for step in steps) <= (ngram - 1) * (window + guesses) + 1
            count += len(steps)
        assert count <= (0.85 if settings == "5,3,5" else 0.92) * reference_steps
