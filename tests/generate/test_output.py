"""What comes back, row by row: sequences, scores and logits, beams; and a model that is left as it was."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteriaList

from ladechat import lookahead_generate, lookahead_steps
from tests.generate.requests import PAD, PROMPT, SCORES, Enough, assert_same, generate, lookahead, padded_batch
from tests.tiny import plain, random_model


@pytest.mark.parametrize("do_sample", [False, True])
def test_scores_and_logits_are_those_of_generate(do_sample: bool) -> None:
    model = random_model(2)
    request = {"max_new_tokens": 12, "repetition_penalty": 1.2, "do_sample": do_sample, "pad_token_id": PAD, **SCORES}
    torch.manual_seed(1)
    expected = generate(model, PROMPT, **request)
    torch.manual_seed(1)
    result = lookahead(model, PROMPT, **request)
    assert len(result.scores) == len(result.logits) == 12
    assert_same(result, expected)


def test_a_row_that_has_ended_has_no_scores_any_more() -> None:
    model = random_model(1)
    batch = padded_batch(random.Random(3), 2)
    first = plain(model, batch["input_ids"][0][batch["attention_mask"][0].bool()].tolist(), 3)
    second = plain(model, batch["input_ids"][1][batch["attention_mask"][1].bool()].tolist(), 8)
    end = first[2]
    assert end not in second and end not in first[:2]
    result = lookahead(
        model, **batch, max_new_tokens=8, eos_token_id=end, pad_token_id=PAD, return_dict_in_generate=True,
        output_scores=True,
    )  # fmt: skip
    assert result.sequences[0, -5:].tolist() == [PAD] * 5
    assert [bool(score[0].isnan().all()) for score in result.scores] == [False] * 3 + [True] * 5
    assert not any(bool(score[1].isnan().any()) for score in result.scores)


@pytest.mark.parametrize("door", [True, False])
@pytest.mark.parametrize("more", [{}, {"do_sample": True}, {"num_return_sequences": 2}, SCORES])
def test_beam_search_is_that_of_transformers(door: bool, more: dict[str, Any]) -> None:
    model = random_model(4)
    request = {**padded_batch(random.Random(1), 2), "max_new_tokens": 10, "num_beams": 3, "pad_token_id": PAD, **more}
    torch.manual_seed(2)
    expected = generate(model, **request)
    torch.manual_seed(2)
    if door:
        result = generate(model, **request, custom_generate=lookahead_generate, window=4)
    else:
        result = lookahead(model, **request, window=4)
    assert_same(result, expected)


class BanAtTheThird(LogitsProcessor):
    """Counts the tokens of a text, and forbids the likeliest one where it comes to three: one that keeps a state."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.asked += 1
        return scores.scatter(1, scores.argmax(1, keepdim=True), -torch.inf) if self.asked == 3 else scores


def test_what_keeps_a_state_keeps_one_for_all_rows() -> None:
    model = random_model(4)
    batch = {**padded_batch(random.Random(1), 3), "max_new_tokens": 14, "pad_token_id": PAD, "eos_token_id": 96}

    def with_state(ask: Callable[..., Any], *processors: LogitsProcessor) -> Any:
        criteria = StoppingCriteriaList([Enough()])
        return ask(model, **batch, logits_processor=LogitsProcessorList(processors), stopping_criteria=criteria)

    expected = with_state(generate, BanAtTheThird())
    with pytest.warns(UserWarning, match="may look at all rows"):
        assert torch.equal(with_state(lookahead, BanAtTheThird()), expected)
    assert not torch.equal(with_state(generate), expected)


def test_several_answers_to_one_prompt_are_rows_of_their_own() -> None:
    model = random_model(4)
    request = {"max_new_tokens": 10, "do_sample": True, "num_return_sequences": 3, "pad_token_id": PAD}
    torch.manual_seed(5)
    result = lookahead(model, PROMPT, **request)
    assert result.shape == (3, PROMPT.shape[1] + 10)
    assert len({tuple(row) for row in result.tolist()}) == 3


def test_the_shortest_text_is_written_too() -> None:
    model = random_model(1)
    request = {"max_new_tokens": 1, "pad_token_id": PAD}
    assert torch.equal(lookahead(model, PROMPT[:, :1], **request), generate(model, PROMPT[:, :1], **request))


def test_a_model_that_cannot_verify_drafts_is_decoded_plainly_and_says_so() -> None:
    model = random_model(1, "bloom", n_head=4, n_layer=2)
    request = {"max_new_tokens": 12, "pad_token_id": PAD}
    with pytest.warns(UserWarning, match="ALiBi"):
        result = lookahead(model, PROMPT, **request)
    assert torch.equal(result, generate(model, PROMPT, **request))
    with pytest.warns(UserWarning, match="ALiBi"):
        steps = list(lookahead_steps(model, PROMPT, max_new_tokens=12))
    assert [len(step.tokens) for step in steps] == [1] * 12


def test_a_models_generation_is_what_it_was_after_a_call() -> None:
    model = random_model(5)
    before = generate(model, PROMPT, max_new_tokens=12)
    lookahead(model, PROMPT, max_new_tokens=12)
    assert torch.equal(generate(model, PROMPT, max_new_tokens=12), before)
