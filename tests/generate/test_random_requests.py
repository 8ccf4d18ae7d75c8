"""Whatever `generate` is asked for, `lookahead_generate` returns the same, called by itself or handed to it."""

import random
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteriaList,
    WatermarkingConfig,
)

from tests.generate.requests import PAD, SCORES, AfterTwins, Enough, asked, assert_same, generate, padded_batch
from tests.tiny import VOCABULARY, random_model


class Ban(LogitsProcessor):
    """Forbids what the text ended with three tokens ago: a processor of one's own, which looks at the text."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.scatter(1, input_ids[:, -3:-2], -torch.inf)


def random_request(dice: random.Random) -> dict[str, Any]:
    """Arguments of `generate`. Stop strings are asked for elsewhere: they need a tokenizer."""
    rows = dice.choice([1, 1, 1, 1, 2])
    request: dict[str, Any] = {
        "max_new_tokens": dice.randint(1, 30),
        "pad_token_id": PAD,
        "eos_token_id": dice.choice([[96], [7, 40, 77], [2]]),
        "do_sample": dice.random() < 0.5,
    }
    options = options_for(rows, request["do_sample"])
    request |= {name: value for name, value in options.items() if dice.random() < 0.2}
    if dice.random() < 0.1:
        request |= {"num_beams": 2}
    elif dice.random() < 0.2:
        request |= SCORES
    return {**request, **padded_batch(dice, rows)}


def options_for(rows: int, do_sample: bool) -> dict[str, Any]:
    """Options that a request for so many rows may have besides."""
    options: dict[str, Any] = {
        "repetition_penalty": 1.3,
        "no_repeat_ngram_size": 3,
        "min_new_tokens": 5,
        "bad_words_ids": [[11], [12, 13]],
        "suppress_tokens": [20, 21],
        "forced_eos_token_id": 96,
        "exponential_decay_length_penalty": (4, 1.2),
        "sequence_bias": {(30,): 3.0},
        "renormalize_logits": True,
        "logits_processor": LogitsProcessorList([Ban()]),
        "stopping_criteria": StoppingCriteriaList([AfterTwins(), Enough()]),
        "begin_suppress_tokens": [8, 13],
        "watermarking_config": WatermarkingConfig(bias=2.0),
        "min_length": 24,
    }
    if rows == 1:
        options |= {
            "encoder_repetition_penalty": 1.2,
            "encoder_no_repeat_ngram_size": 2,
            "guidance_scale": 1.5,
            "prefix_allowed_tokens_fn": evens,
        }
    if do_sample:
        options |= {
            "top_h": 0.6,
            "eta_cutoff": 1e-3,
            "temperature": 0.7,
            "top_k": 5,
            "top_p": 0.9,
            "min_p": 0.05,
            "typical_p": 0.9,
            "epsilon_cutoff": 1e-3,
        }
    return options


def evens(_: int, ids: torch.Tensor) -> list[int]:
    """Every other token, by the last one."""
    return list(range(int(ids[-1]) % 2, VOCABULARY, 2))


def as_config(dice: random.Random, request: dict[str, Any]) -> dict[str, Any]:
    """The same request, at times with a generation config in the place of its options."""
    if dice.random() < 0.7:
        return request
    outside = ("input_ids", "attention_mask", "logits_processor", "stopping_criteria", "prefix_allowed_tokens_fn")
    given = {name: request[name] for name in outside if name in request}
    return {**given, "generation_config": GenerationConfig(**{k: v for k, v in request.items() if k not in given})}


def check_a_random_request(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(dice.randrange(6), num_key_value_heads=dice.choice([1, 2, 4]))
    request = random_request(dice)
    request = as_config(dice, request)
    numbers = {"window": dice.randint(1, 9), "ngram": dice.randint(2, 6), "guesses": dice.randint(0, 9)}
    door = dice.random() < 0.5
    ask = partial(asked, door=door)
    torch.manual_seed(seed)
    try:
        expected = generate(model, **deepcopy(request))
    except (ValueError, RuntimeError):  # options that together leave no token at all
        torch.manual_seed(seed)
        with pytest.raises((ValueError, RuntimeError, FloatingPointError)):
            ask(model, **request, **numbers)
        return
    torch.manual_seed(seed)
    assert_same(ask(model, **request, **numbers), expected, f"seed {seed}")


FIVE_HUNDRED_MORE = [pytest.param(range(first, first + 50), marks=pytest.mark.full) for first in range(1000, 1500, 50)]


@pytest.mark.filterwarnings("ignore:Decoded by transformers' own loop")
@pytest.mark.parametrize("seeds", [*(range(first, first + 10) for first in range(0, 40, 10)), *FIVE_HUNDRED_MORE])
def test_output_is_that_of_generate(seeds: range) -> None:
    for seed in seeds:
        check_a_random_request(seed)
