"""The decoders that lookahead is measured against: each drafts what its name says.

That they write what plain decoding writes: see tests/test_exactness.py.
"""

import pytest
from hypothesis import given, strategies as st

from ladechat import registry
from ladechat.decoder.drafters.drafter import Drafter
from ladechat.decoder.drafters.jacobi_block import JacobiBlockDrafter
from ladechat.decoder.drafters.prompt_lookup import PromptLookupDrafter
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Draft, Limits
from tests.drafters.trees import PLENTY
from tests.drafters.turns import turns
from tests.tiny import demo_model, demo_prompt, plain, random_model, run, runner_for, tokens_of

PROMPT = [5, 8, 13, 21, 34, 5, 8, 13]
POOL = "What is the n-gram pool?"
FRUITS = "List seven fruits."


@pytest.mark.parametrize(
    ("name", "question"), [("jacobi", FRUITS), ("prompt_lookup", POOL), ("suffix", POOL), ("recycling", FRUITS)]
)
def test_the_bundled_model_answers_the_same_in_fewer_steps(name: str, question: str) -> None:
    """Each where it can: by chance, by what was said before, or by what other passes held likely."""
    prompt = demo_prompt(question)
    if question == POOL:
        prompt = [*prompt, *plain(demo_model(), prompt, 60, [2]), *prompt]
    answer = plain(demo_model(), prompt, 60, [2])
    steps = run(registry.make(name, runner_for(demo_model())), prompt, 60, [2])
    assert tokens_of(steps) == answer
    assert len(steps) < len(answer)


def test_a_jacobi_step_shows_the_block_that_went_in_and_what_the_next_one_begins_with() -> None:
    decoder = Decoder(runner_for(random_model(1)), [JacobiBlockDrafter(block=4)])
    first, second, *_ = run(decoder, PROMPT, 30)
    assert first.window is not None and second.window is not None and first.draft is not None
    assert first.window.rows == ((PROMPT[-1],) * 5,)
    left = first.window.fresh[len(first.tokens) :]
    assert second.window.rows[0][0] == first.tokens[-1]
    assert second.window.rows[0][1 : 1 + len(left)] == left
    assert set(first.draft.sources) == {"window"}


@pytest.mark.parametrize("block", [0, 1, 7])
def test_a_jacobi_block_has_the_length_that_was_set(block: int) -> None:
    decoder = Decoder(runner_for(random_model(1)), [JacobiBlockDrafter()])
    decoder.configure({"window": block})
    assert next(iter(decoder.run(PROMPT, Limits(30)))).slots == 1 + block


def first_draft(drafter: Drafter, prompt: list[int], generated: int = 0) -> Draft:
    decoder = Decoder(runner_for(random_model(1)), [drafter])
    first = next(iter(decoder.run(prompt, Limits(30), generated=generated)))
    assert first.draft is not None and first.window is None
    return first.draft


def test_prompt_lookup_drafts_what_followed_the_same_tokens_before() -> None:
    draft = first_draft(PromptLookupDrafter(length=3), PROMPT)
    assert draft.tokens == (21, 34, 5)
    assert draft.parents == (-1, 0, 1)
    assert set(draft.sources) == {"prompt"}


def test_prompt_lookup_tells_the_prompt_from_the_answer() -> None:
    draft = first_draft(PromptLookupDrafter(length=2), [40, *PROMPT], generated=8)
    assert set(draft.sources) == {"accepted"}


def test_prompt_lookup_matches_one_token_less_than_n() -> None:
    text = [1, 2, 30, 9, 2, 40, 1, 2]
    drafts = {}
    for ngram in (2, 3):
        drafter = PromptLookupDrafter()
        drafter.configure({"window": 1, "ngram": ngram})
        drafts[ngram] = first_draft(drafter, text).tokens
    assert drafts == {2: (40,), 3: (30,)}


def drafts_where_it_went_on(drafter: PromptLookupDrafter, text: list[int]) -> bool:
    """Whether it copies from the latest earlier place that ends like the text, in as many tokens as any."""

    def alike(end: int) -> int:
        longest = 0
        while longest < min(drafter.match, end) and text[end - 1 - longest] == text[-1 - longest]:
            longest += 1
        return longest

    best, latest = max(((alike(end), end) for end in range(1, len(text))), default=(0, 0))
    drafted = [node.token for node in drafter.propose(PLENTY).nodes]
    return drafted == (text[latest : latest + drafter.length] if best else [])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=25), st.integers(1, 4))
def test_the_place_found_ends_like_the_text_in_as_many_tokens_as_any_and_is_the_latest(
    text: list[int], match: int
) -> None:
    drafter = PromptLookupDrafter(length=3, match=match)
    drafter.begin(text, len(text))
    assert drafts_where_it_went_on(drafter, text)


@pytest.mark.parametrize("seed", range(20))
def test_prompt_lookup_drafts_from_a_text_that_was_cut_or_edited_as_from_a_new_one(seed: int) -> None:
    drafter = PromptLookupDrafter(length=3, match=1 + seed % 4)
    for turn in turns(seed):
        text = list(turn.prompt)
        drafter.begin(text, len(text))
        assert drafts_where_it_went_on(drafter, text)
        for token in turn.answer[: 10 if seed % 2 else None]:
            text.append(token)
            assert seed % 3 or drafts_where_it_went_on(drafter, text)  # some steps have the policy pause
