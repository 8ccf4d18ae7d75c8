"""Several rows are decoded together, as `generate` does it: that takes fewer passes than one after another."""

import random
import threading
import time
import warnings
from functools import partial
from typing import Any

import pytest
import torch
from transformers import LogitsProcessor, LogitsProcessorList, MaxLengthCriteria, StoppingCriteria, StoppingCriteriaList

from tests.generate.requests import (
    PAD,
    PROMPT,
    SCORES,
    AfterTwins,
    asked,
    assert_as_generate,
    assert_same,
    generate,
    handed_on,
    lookahead,
    padded_batch,
)
from tests.tiny import random_model

BATCH = {**padded_batch(random.Random(1), 3), "max_new_tokens": 14, "pad_token_id": PAD, "eos_token_id": 96}


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


@pytest.mark.parametrize("door", [False, True])
def test_rows_are_those_of_generate_draws_processors_and_criteria_included(door: bool) -> None:
    model = random_model(4)

    def request() -> dict[str, Any]:
        torch.manual_seed(3)
        own: dict[str, Any] = {"logits_processor": LogitsProcessorList([UnlikeTheOthers(), CountsUnderALock()])}
        own["stopping_criteria"] = StoppingCriteriaList([AfterTwins()])
        return {**BATCH, **SCORES, **own, "do_sample": True}

    expected = generate(model, **request())
    with handed_on("several rows take fewer passes together"):
        assert_same(asked(model, door=door, **request()), expected)


class Passes:
    """Counts the passes of a model while it is entered."""

    def __init__(self, model: Any) -> None:
        self.model, self.count = model, 0

    def __enter__(self) -> "Passes":
        own = type(self.model).forward

        def counting(*arguments: Any, **given: Any) -> Any:
            self.count += 1
            return own(self.model, *arguments, **given)

        self.model.forward = counting
        return self

    def __exit__(self, *_: object) -> None:
        del self.model.forward


def test_a_list_of_prompts_takes_no_more_passes_than_plainly() -> None:
    model, counts = random_model(4), list[int]()
    for ask in (generate, partial(asked, door=True)):
        with Passes(model) as passes, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ask(model, **BATCH)
        counts.append(passes.count)
    assert counts[1] == counts[0] > 1


def test_several_answers_to_one_prompt_are_rows() -> None:
    request = {"max_new_tokens": 10, "do_sample": True, "num_return_sequences": 3, "pad_token_id": PAD}
    with handed_on("several rows"):
        assert_as_generate(random_model(4), PROMPT, **request)


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


def test_a_length_criterion_of_ones_own_counts_in_place_of_max_length() -> None:
    model = random_model(1)
    for length in (40, 12, 3):
        request: dict[str, Any] = {"eos_token_id": [], "pad_token_id": PAD}
        request["stopping_criteria"] = StoppingCriteriaList([MaxLengthCriteria(length)])
        assert_as_generate(model, PROMPT, **request)


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
