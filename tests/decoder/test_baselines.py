"""The decoders that lookahead is measured against: exact, and each drafts what its name says."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladechat.decoder.jacobi_only import JacobiDecoder
from ladechat.decoder.prompt_lookup import PromptLookupDecoder, continuation
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Decoder, Limits
from tests.tiny import VOCABULARY, demo_model, demo_prompt, plain, random_model, run, runner_for, tokens_of

PROMPT = [5, 8, 13, 21, 34, 5, 8, 13]
POOL = "What is the n-gram pool?"
BASELINES: list[Callable[[Runner], Decoder]] = [JacobiDecoder, PromptLookupDecoder]


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("seed", range(8))
def test_output_equals_plain_decoding(baseline: type[JacobiDecoder] | type[PromptLookupDecoder], seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(dice.randrange(6))
    prompt = [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 30))]
    limit, eos = dice.randint(1, 60), [dice.randrange(VOCABULARY) for _ in range(dice.randint(0, 3))]
    decoder = baseline(runner_for(model), dice.randint(0, 9))
    assert tokens_of(run(decoder, prompt, limit, eos)) == plain(model, prompt, limit, eos)


@pytest.mark.parametrize("baseline", BASELINES)
def test_a_run_fills_the_context_to_its_end_and_no_slot_lies_beyond(baseline: Callable[[Runner], Decoder]) -> None:
    model = random_model(2)
    written = tokens_of(run(baseline(runner_for(model, context_length=48)), PROMPT, 1000))
    assert written == plain(model, PROMPT, 48 - len(PROMPT))


@pytest.mark.parametrize(("baseline", "question"), zip(BASELINES, ["List seven fruits.", POOL], strict=True))
def test_the_bundled_model_answers_the_same_in_fewer_steps(
    baseline: Callable[[Runner], Decoder], question: str
) -> None:
    """Jacobi decoding gains where its block comes right by chance, prompt lookup where something was said before."""
    prompt = demo_prompt(question)
    if question == POOL:
        prompt = [*prompt, *plain(demo_model(), prompt, 60, [2]), *prompt]
    answer = plain(demo_model(), prompt, 60, [2])
    steps = run(baseline(runner_for(demo_model())), prompt, 60, [2])
    assert tokens_of(steps) == answer
    assert len(steps) < len(answer)


def test_a_jacobi_step_shows_the_block_that_went_in_and_what_the_next_one_begins_with() -> None:
    decoder = JacobiDecoder(runner_for(random_model(1)), block=4)
    first, second = list(decoder.run(PROMPT, Limits(30)))[:2]
    assert first.window is not None and second.window is not None and first.draft is not None
    assert first.window.rows == ((PROMPT[-1],) * 5,)
    left = first.window.fresh[len(first.tokens) :]
    assert second.window.rows[0][0] == first.tokens[-1]
    assert second.window.rows[0][1 : 1 + len(left)] == left
    assert set(first.draft.sources) == {"window"}


def test_prompt_lookup_drafts_what_followed_the_same_tokens_before() -> None:
    decoder = PromptLookupDecoder(runner_for(random_model(1)), length=3)
    first = next(iter(decoder.run(PROMPT, Limits(30))))
    assert first.draft is not None and first.window is None
    assert first.draft.tokens == (21, 34, 5)
    assert set(first.draft.sources) == {"prompt"}


def test_prompt_lookup_tells_the_prompt_from_the_answer() -> None:
    decoder = PromptLookupDecoder(runner_for(random_model(1)), length=2)
    first = next(iter(decoder.run([40, *PROMPT], Limits(30), generated=8)))
    assert first.draft is not None
    assert set(first.draft.sources) == {"accepted"}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=25), st.integers(1, 4))
def test_the_place_found_ends_like_the_text_in_as_many_tokens_as_any_and_is_the_latest(
    text: list[int], match: int
) -> None:
    def alike(end: int) -> int:
        longest = 0
        while longest < min(match, end) and text[end - 1 - longest] == text[-1 - longest]:
            longest += 1
        return longest

    found = continuation(text, match)
    best = max((alike(end) for end in range(1, len(text))), default=0)
    if best == 0:
        assert found is None
    else:
        assert found == max(end for end in range(1, len(text)) if alike(end) == best)
