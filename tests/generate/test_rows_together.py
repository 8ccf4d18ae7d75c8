"""Rows whose processors or criteria may look at all of them are decoded together, as `generate` does it."""

import random
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList, MaxLengthCriteria, StoppingCriteria, StoppingCriteriaList

from ladechat import lookahead_generate
from tests.generate.requests import PAD, PROMPT, SCORES, assert_same, generate, lookahead, padded_batch
from tests.tiny import random_model

BATCH = {**padded_batch(random.Random(1), 3), "max_new_tokens": 14, "pad_token_id": PAD, "eos_token_id": 96}
OWN_LOOP = "transformers' own loop"


class BanByRow(LogitsProcessor):
    """Forbids another token in each row: one that knows rows."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(len(scores))
        scores = scores.clone()
        scores[rows, (scores.argmax(1) * (rows % 2 == 0)).long()] = -torch.inf
        return scores


class UnlikeTheOthers(LogitsProcessor):
    """Forbids in each row the token that the row above likes best: one that is about all rows."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.scatter(1, scores.argmax(1, keepdim=True).roll(1, 0), -torch.inf)


class CountsUnderALock(LogitsProcessor):
    """Forbids the likeliest token at every third call, for all rows together; cannot be copied."""

    def __init__(self) -> None:
        self.lock, self.calls = threading.Lock(), 0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        with self.lock:
            self.calls += 1
            return scores.scatter(1, scores.argmax(1, keepdim=True), -torch.inf) if self.calls % 3 == 0 else scores


class OneAnswerForEachOfThree(StoppingCriteria):
    """Ends the rows one by one, and answers for three in any case."""

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        return torch.tensor([input_ids.shape[1] % 20 > 10 + row for row in range(3)])


@pytest.mark.parametrize("processor", [BanByRow, UnlikeTheOthers, CountsUnderALock])
def test_processors_that_know_rows_or_share_a_state_see_all_of_them(processor: Callable[[], LogitsProcessor]) -> None:
    model = random_model(4)
    expected = generate(model, **BATCH, **SCORES, logits_processor=LogitsProcessorList([processor()]))
    for ask in (lookahead, through_generate):
        with pytest.warns(UserWarning, match=f"{OWN_LOOP}.*{processor.__name__} may look at all rows"):
            result = ask(model, **BATCH, **SCORES, logits_processor=LogitsProcessorList([processor()]))
        assert_same(result, expected)


def through_generate(model: Any, **request: Any) -> Any:
    return generate(model, **request, custom_generate=lookahead_generate)


def test_a_criterion_that_answers_for_all_rows_is_asked_about_all_of_them() -> None:
    model, criteria = random_model(4), StoppingCriteriaList([OneAnswerForEachOfThree()])
    expected = generate(model, **BATCH, stopping_criteria=criteria)
    with pytest.warns(UserWarning, match=OWN_LOOP):
        assert torch.equal(lookahead(model, **BATCH, stopping_criteria=criteria), expected)


class StopFlag(StoppingCriteria):
    """Ends all rows once another thread has said so."""

    def __init__(self) -> None:
        self.raised = threading.Event()
        self.asked = threading.Event()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        self.asked.set()
        return torch.full((len(input_ids),), self.raised.is_set())


@pytest.mark.parametrize("rows", [1, 3])
def test_a_stop_flag_that_another_thread_raises_is_seen(rows: int) -> None:
    flag = StopFlag()

    def raise_when_asked() -> None:
        flag.asked.wait()
        flag.raised.set()

    threading.Thread(target=raise_when_asked, daemon=True).start()
    request = {"max_new_tokens": 480, "pad_token_id": PAD, "eos_token_id": [], "stopping_criteria": [flag]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = lookahead(random_model(4), PROMPT.repeat(rows, 1), **request)
    assert flag.raised.is_set() and result.shape[1] < PROMPT.shape[1] + 480


def test_transformers_own_classes_keep_rows_fast() -> None:
    request = {
        **BATCH,
        "repetition_penalty": 1.3,
        "no_repeat_ngram_size": 3,
        "min_new_tokens": 5,
        "bad_words_ids": [[11]],
    }
    model = random_model(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(lookahead(model, **request), generate(model, **request))


def test_what_concerns_all_rows_in_transformers_itself_is_done_as_generate_does_it() -> None:
    model = random_model(4)
    options: list[dict[str, Any]] = [
        {"prefix_allowed_tokens_fn": lambda row, ids: [10 + row, 20 + int(ids[-1]) % 7]},
        {"encoder_repetition_penalty": 1.2},
        {"guidance_scale": 1.5},
        {"max_time": 1e6},
    ]
    for option in options:
        with pytest.warns(UserWarning, match="may look at all rows"):
            result = lookahead(model, **BATCH, **option)
        assert torch.equal(result, generate(model, **BATCH, **option)), option


def test_a_length_criterion_of_ones_own_counts_in_place_of_max_length() -> None:
    model = random_model(1)
    for length in (40, 12, 3):
        request: dict[str, Any] = {"eos_token_id": [], "pad_token_id": PAD}
        request["stopping_criteria"] = StoppingCriteriaList([MaxLengthCriteria(length)])
        assert torch.equal(lookahead(model, PROMPT, **request), generate(model, PROMPT, **request)), length


class Slow(StoppingCriteria):
    """Never ends a text, and has a thread that waits on it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        with self.lock:
            time.sleep(0)
        return torch.zeros(len(input_ids), dtype=torch.bool)


def test_one_row_asks_the_very_objects_that_it_was_given() -> None:
    model, processor = random_model(1), CountsUnderALock()
    request = {"max_new_tokens": 12, "pad_token_id": PAD, "stopping_criteria": [Slow()]}
    expected = generate(model, PROMPT, **request, logits_processor=LogitsProcessorList([CountsUnderALock()]))
    assert torch.equal(lookahead(model, PROMPT, **request, logits_processor=LogitsProcessorList([processor])), expected)
    assert processor.calls == expected.shape[1] - PROMPT.shape[1]
