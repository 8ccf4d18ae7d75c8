"""`lookahead_steps`: the steps of one row, as they come."""

from typing import Any

import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

import ladechat
from ladechat import Sampling, UnsupportedModel, lookahead_generate, lookahead_steps
from tests.generate.requests import PROMPT
from tests.tiny import new_model, plain, random_model, tokens_of


def test_steps_add_up_to_the_text_and_say_what_they_drafted() -> None:
    model = random_model(1)
    steps = list(lookahead_steps(model, PROMPT, max_new_tokens=20, eos_token_id=[], window=4, ngram=4, guesses=4))
    assert tokens_of(steps) == plain(model, PROMPT[0].tolist(), 20)
    assert all(step.window is not None and step.draft is not None for step in steps[:5])


def test_steps_end_with_the_models_own_end_of_text_and_may_be_sampled() -> None:
    model = random_model(1)
    sampling = Sampling(sample=True, generator=torch.Generator().manual_seed(3))
    sampled = tokens_of(list(lookahead_steps(model, PROMPT, max_new_tokens=400, sampling=sampling)))
    assert sampled.index(2) == len(sampled) - 1


def test_the_window_looks_beyond_the_last_token_that_may_be_written() -> None:
    steps = list(lookahead_steps(random_model(1), PROMPT, max_new_tokens=12, eos_token_id=[], window=15, ngram=5))
    assert all(step.window is not None for step in steps)


def test_several_rows_have_no_common_steps() -> None:
    with pytest.raises(ValueError, match="one row at a time"):
        lookahead_steps(random_model(1), PROMPT.repeat(2, 1), max_new_tokens=3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        ({"max_new_tokens": "4"}, "max_new_tokens must be an integer"),
        ({"max_new_tokens": 600}, "may come to 608, but the model has 512 positions"),
        ({"max_new_tokens": 4, "window": 600}, "look 600 positions ahead"),
    ],
)
def test_numbers_without_steps_are_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        lookahead_steps(random_model(1), PROMPT, **options)


def trained() -> Any:
    return new_model(3).train()


def hooked() -> Any:
    model = new_model(3)
    model.model.layers[1].mlp.register_forward_hook(lambda module, inputs, output: output + 0.3)
    return model


def looping() -> Any:
    model = new_model(3)
    model.__class__ = type("Looping", (type(model),), {"_sample": lambda self, ids, *more, **given: ids})
    return model


def with_an_encoder() -> Any:
    config = T5Config(vocab_size=97, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, pad_token_id=0)
    config.decoder_start_token_id = 0
    return T5ForConditionalGeneration(config).eval()


@pytest.mark.parametrize("build", [trained, hooked, looping, with_an_encoder])
@pytest.mark.filterwarnings("ignore:Decoded by transformers' own loop")
def test_what_lookahead_generate_hands_on_has_no_steps(build: Any) -> None:
    model = build()
    with pytest.raises(ValueError, match="There are no steps to show"):
        lookahead_steps(model, PROMPT, max_new_tokens=3)
    assert isinstance(lookahead_generate(model, PROMPT, max_new_tokens=3), torch.Tensor)


def test_the_package_lists_what_it_offers() -> None:
    assert {"Sampling", "UnsupportedModel", "lookahead_generate", "lookahead_steps"} <= set(dir(ladechat))
    assert issubclass(UnsupportedModel, ValueError) and Sampling(sample=True).sample
