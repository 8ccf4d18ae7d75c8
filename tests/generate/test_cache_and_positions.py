"""Where a text depends on its cache, on padding or on rounding, it is that of `generate`."""

from contextlib import nullcontext
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, PreTrainedModel

from tests.generate.requests import PAD, assert_as_generate, fast, handed_on, lookahead, padded_row
from tests.tiny import new_model, random_model

AT = 48
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4, "long_factor": [8.0, 4.0, 2.0, 1.5]}
MODELS: dict[str, dict[str, Any]] = {
    "dynamic": {"model_type": "llama", "max_position_embeddings": AT, "rope_parameters": DYNAMIC},
    "longrope": {
        "model_type": "llama",
        "rope_parameters": {**LONG, "original_max_position_embeddings": AT, "factor": 4.0},
    },
    "phi3": {"model_type": "phi3", "original_max_position_embeddings": AT, "rope_parameters": LONG},
}


def fresh(name: str, seed: int = 30) -> PreTrainedModel:
    """A model that has read nothing yet: one with dynamic angles keeps those of the longest text that it has read."""
    return deepcopy(unread(name, seed))


@cache
def unread(name: str, seed: int) -> PreTrainedModel:
    """What copies are made of: drawing all weights takes longer than writing a text."""
    model: PreTrainedModel = new_model(seed, **deepcopy(MODELS[name]))
    return model


@pytest.mark.filterwarnings("ignore:Decoded by transformers' own loop")
@pytest.mark.parametrize("name", MODELS)
def test_without_a_cache_a_text_is_that_of_generate_without_a_cache(name: str) -> None:
    request = {**padded_row(40, 40), "max_new_tokens": 30, "use_cache": False, "eos_token_id": []}
    assert_as_generate(fresh(name), theirs=fresh(name), **request)


def test_that_a_cache_is_not_used_is_said() -> None:
    with pytest.warns(UserWarning, match="use_cache=False has each pass read the whole text"):
        lookahead(random_model(1), **padded_row(8, 8), max_new_tokens=3, use_cache=False)


@pytest.mark.parametrize("length", [40, AT])
@pytest.mark.parametrize("name", MODELS)
def test_a_text_whose_last_token_alone_is_beyond_the_boundary_keeps_its_gain(name: str, length: int) -> None:
    row = padded_row(length, length)
    request = {**row, "max_new_tokens": AT + 1 - length, "eos_token_id": [], "pad_token_id": PAD}
    with fast():
        assert_as_generate(fresh(name), theirs=fresh(name), **request)


@pytest.mark.filterwarnings("ignore:Decoded by transformers' own loop")
@pytest.mark.parametrize(("length", "padded_to"), [(40, 40), (12, 44), (20, 60), (44, 44), (70, 70)])
@pytest.mark.parametrize("name", ["dynamic", "longrope"])
def test_texts_beyond_the_boundary_of_their_angles_are_those_of_generate(
    name: str, length: int, padded_to: int
) -> None:
    for seed in (30, 31, 32):
        row = padded_row(length, padded_to)
        request = {**row, "max_new_tokens": 16, "eos_token_id": [], "pad_token_id": PAD}
        assert_as_generate(fresh(name, seed), theirs=fresh(name, seed), **request)


def test_angles_that_an_earlier_text_left_are_those_that_generate_goes_on_with() -> None:
    ours, theirs = fresh("dynamic"), fresh("dynamic")
    for length in (80, 60, 20, 50):
        request = {**padded_row(length, length), "max_new_tokens": 12, "eos_token_id": []}
        slow = pytest.warns(UserWarning, match="rotary angles change with every token beyond 48")
        with slow if length > AT else nullcontext():
            assert_as_generate(ours, theirs=theirs, **request)


def test_a_text_that_generate_forgets_at_the_boundary_is_forgotten() -> None:
    for length, new_tokens in ((40, AT + 2 - 40), (AT, 4)):
        request = {**padded_row(length, length), "max_new_tokens": new_tokens, "eos_token_id": []}
        with handed_on("outgrows 48 tokens, generate forgets it"):
            assert_as_generate(fresh("phi3"), theirs=fresh("phi3"), **request)
    for length in (20, 60):
        request = {**padded_row(length, length), "max_new_tokens": 12, "eos_token_id": []}
        with fast():
            assert_as_generate(fresh("phi3"), theirs=fresh("phi3"), **request)


def test_what_float64_tells_apart_and_float32_does_not_is_a_tie() -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(random_model(0).config, dtype=torch.float64).eval()
    with torch.no_grad():  # each even token has a twin that is larger by less than float32 sees
        head = model.lm_head.weight
        head[1::2] = head[:-1:2] * (1 + 1e-12)
    assert_as_generate(model, **padded_row(8, 8), max_new_tokens=30, eos_token_id=[])


def test_a_quantised_cache_is_left_to_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here it is a cache of another kind: the package that quantises is not needed to see who is asked."""
    monkeypatch.setattr("transformers.generation.utils.QuantizedCache", lambda backend, config: DynamicCache())
    with pytest.warns(UserWarning, match="a quantised KV cache"):
        assert_as_generate(random_model(1), **padded_row(8, 8), max_new_tokens=12, cache_implementation="quantized")
