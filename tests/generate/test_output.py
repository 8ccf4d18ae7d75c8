"""What comes back: sequences, scores and logits, beams; and a model that is left as it was."""

import random
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor

from ladechat import lookahead_steps
from tests.generate.requests import (
    PAD,
    PROMPT,
    SCORES,
    asked,
    assert_as_generate,
    assert_same,
    generate,
    handed_on,
    lookahead,
    padded_batch,
)
from tests.tiny import random_model


@pytest.mark.parametrize("do_sample", [False, True])
def test_scores_and_logits_are_those_of_generate(do_sample: bool) -> None:
    model = random_model(2)
    request = {"max_new_tokens": 12, "repetition_penalty": 1.2, "do_sample": do_sample, "pad_token_id": PAD, **SCORES}
    result = assert_as_generate(model, PROMPT, **request)
    assert len(result.scores) == len(result.logits) == 12


@pytest.mark.parametrize("door", [True, False])
@pytest.mark.parametrize("more", [{}, {"do_sample": True}, {"num_return_sequences": 2}, SCORES])
def test_beam_search_is_that_of_transformers(door: bool, more: dict[str, Any]) -> None:
    model = random_model(4)
    request = {**padded_batch(random.Random(1), 2), "max_new_tokens": 10, "num_beams": 3, "pad_token_id": PAD, **more}
    torch.manual_seed(2)
    expected = generate(model, **request)
    torch.manual_seed(2)
    with handed_on("beam search writes several texts"):
        assert_same(asked(model, door=door, window=4, **request), expected)


class BanAtTheThird(LogitsProcessor):
    """Counts the tokens of a text, and forbids the likeliest one where it comes to three: one that keeps a state."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        return scores.scatter(1, scores.argmax(1, keepdim=True), -torch.inf) if self.asked == 3 else scores


class Rewrite(LogitsProcessor):
    """Writes into the text that it is shown."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        input_ids[:, 0] = 3
        input_ids[:, -1:] += input_ids[:, -1:] < 9
        return scores


@pytest.mark.parametrize("more", [{}, SCORES, {"do_sample": True}])
def test_what_a_processor_writes_into_the_text_is_returned_as_generate_returns_it(more: dict[str, Any]) -> None:
    model = random_model(2)
    request = {"max_new_tokens": 12, "pad_token_id": PAD, "logits_processor": [Rewrite()], **more}
    torch.manual_seed(1)
    expected = generate(model, PROMPT.clone(), **request)
    torch.manual_seed(1)
    assert_same(lookahead(model, PROMPT.clone(), **request), expected)


def test_the_shortest_text_is_written_too() -> None:
    assert_as_generate(random_model(1), PROMPT[:, :1], max_new_tokens=1, pad_token_id=PAD)


def test_a_model_that_cannot_verify_drafts_is_decoded_plainly_and_says_so() -> None:
    model = random_model(1, "bloom", n_head=4, n_layer=2)
    with pytest.warns(UserWarning, match="ALiBi"):
        assert_as_generate(model, PROMPT, max_new_tokens=12, pad_token_id=PAD)
    with pytest.warns(UserWarning, match="ALiBi"):
        steps = list(lookahead_steps(model, PROMPT, max_new_tokens=12))
    assert [len(step.tokens) for step in steps] == [1] * 12


def test_a_models_generation_is_what_it_was_after_a_call() -> None:
    model = random_model(5)
    before = generate(model, PROMPT, max_new_tokens=12)
    lookahead(model, PROMPT, max_new_tokens=12)
    assert torch.equal(generate(model, PROMPT, max_new_tokens=12), before)
