"""Families of models that once wrote something else than `generate`, or crashed: what they write now."""

import copy
import warnings
from typing import Any

import pytest
import torch
from accelerate import cpu_offload  # type: ignore[import-untyped]  # it has no types
from transformers import LlamaForCausalLM

from ladechat import lookahead_steps
from tests.generate.families import model_of
from tests.generate.requests import PAD, PROMPT, assert_as_generate, generate, lookahead, padded_row
from tests.tiny import random_model

OWN_LOOP = "transformers' own loop"
SLOW = ["bart", "marian", "blt", "reformer", "rwkv", "recurrent_gemma", "git", "axk2", "trocr"]
SLOW += ["minimax_m3_vl_text", "kosmos-2.5", "idefics3 of a llama with a window", "llama with a window"]
FAST = ["qwen2_vl", "idefics3 of a mistral with a window"]


@pytest.mark.parametrize("family", [*SLOW, *FAST, pytest.param("deepseek_v4", marks=pytest.mark.full)])
def test_what_a_family_writes_is_what_generate_writes(family: str) -> None:
    model = model_of(family)
    for length, padded_to, sample in ((50, 50, False), (9, 9, True), (7, 20, False)):
        row = padded_row(length, padded_to)
        request: dict[str, Any] = {**row, "max_new_tokens": 8, "pad_token_id": PAD, "do_sample": sample}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert_as_generate(model, **request)
        if family in FAST:
            assert any(OWN_LOOP in str(one.message) for one in said) == (padded_to > length)


def test_a_model_of_sounds_is_written_by_its_own_loop() -> None:
    model = model_of("csm")
    with pytest.warns(UserWarning, match="CsmForConditionalGeneration has a decoding loop of its own"):
        assert_as_generate(model, PROMPT % 40, max_new_tokens=3, do_sample=False)


def test_positions_on_several_axes_are_not_asked_to_be_left_out() -> None:
    """Nobody gave them: a model of texts and pictures has them made for text, too."""
    assert_as_generate(model_of("qwen2_vl"), PROMPT, door=True, max_new_tokens=12)


@pytest.mark.filterwarnings("ignore:for .*copying from a non-meta parameter")
def test_a_model_whose_weights_are_elsewhere_is_written_by_its_own_loop_and_has_no_steps() -> None:
    model = LlamaForCausalLM(copy.deepcopy(random_model(3).config)).eval()
    model.load_state_dict(random_model(3).state_dict())
    cpu_offload(model, torch.device("cpu"))
    request = {**padded_row(20, 20), "max_new_tokens": 12, "pad_token_id": PAD}
    with pytest.warns(UserWarning, match="fetched for each pass"):
        assert_as_generate(model, theirs=random_model(3), **request)
    with pytest.raises(ValueError, match=r"There are no steps to show: .*fetched for each pass"):
        lookahead_steps(model, PROMPT, max_new_tokens=3)


def test_the_check_of_a_model_draws_no_random_numbers() -> None:
    """reformer draws its hashes in each pass: it writes what it writes only with the dice that generate would have."""
    model = model_of("reformer")
    before = torch.get_rng_state()
    with pytest.warns(UserWarning, match=OWN_LOOP):
        lookahead(model, **padded_row(9, 9), max_new_tokens=1)
    ours = torch.get_rng_state()
    torch.set_rng_state(before)
    generate(model, **padded_row(9, 9), max_new_tokens=1)
    assert torch.equal(ours, torch.get_rng_state())
