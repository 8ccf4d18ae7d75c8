"""Models that prepare their passes, or loop, in their own way are written as they write: by their own loop."""

import copy
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForImageTextToText, LlamaForCausalLM, PreTrainedModel

from ladechat import lookahead_generate
from tests.generate.requests import PAD, PROMPT, assert_as_generate, fast, generate, lookahead
from tests.tiny import SHAPE, random_model

REQUEST: dict[str, Any] = {"max_new_tokens": 30, "pad_token_id": PAD, "eos_token_id": []}
LLAMA: Any = LlamaForCausalLM


class Shifting(LlamaForCausalLM):
    """Stands seven positions further on from the second token of an answer on."""

    def prepare_inputs_for_generation(self, *arguments: Any, **given: Any) -> dict[str, Any]:
        inputs: dict[str, Any] = LLAMA.prepare_inputs_for_generation(self, *arguments, **given)
        if not given.get("is_first_iteration"):
            inputs["position_ids"] = inputs["position_ids"] + 7
        return inputs


class ShiftingLater(LlamaForCausalLM):
    """Stands further on from position 21 on."""

    def prepare_inputs_for_generation(self, *arguments: Any, **given: Any) -> dict[str, Any]:
        inputs: dict[str, Any] = LLAMA.prepare_inputs_for_generation(self, *arguments, **given)
        inputs["position_ids"] = inputs["position_ids"] + 3 * (inputs["position_ids"] > 20)
        return inputs


class Forgetting(LlamaForCausalLM):
    """Updates what it is given in its own way: every token of an answer stands where the prompt ended."""

    def _update_model_kwargs_for_generation(self, outputs: Any, model_kwargs: Any, *more: Any, **given: Any) -> Any:
        before = model_kwargs["position_ids"]
        updated = LLAMA._update_model_kwargs_for_generation(self, outputs, model_kwargs, *more, **given)
        return {**updated, "position_ids": torch.cat([before, before[:, -1:]], dim=1)}


class Sparing(LlamaForCausalLM):
    """Has a loop of its own, which writes five tokens in any case."""

    def _sample(self, input_ids: Any, *more: Any, **given: Any) -> Any:
        return torch.cat([input_ids, input_ids[:, :5]], dim=1)


class Talkative(LlamaForCausalLM):
    """Says something at the end of every text."""

    def generate(self, *arguments: Any, **given: Any) -> Any:
        text = LLAMA.generate(self, *arguments, **given)
        return torch.cat([text, text[:, :2]], dim=1)


class Harmless(LlamaForCausalLM):
    """Prepares its passes itself, as everybody does."""

    def prepare_inputs_for_generation(self, *arguments: Any, **given: Any) -> dict[str, Any]:
        inputs: dict[str, Any] = LLAMA.prepare_inputs_for_generation(self, *arguments, **given)
        return {**inputs, "token_type_ids": None}


def built(kind: Callable[[Any], PreTrainedModel]) -> PreTrainedModel:
    """A model of this kind with the weights of another."""
    model: PreTrainedModel = kind(copy.deepcopy(random_model(3).config)).eval()
    model.load_state_dict(random_model(3).state_dict())
    return model


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Shifting, "Shifting prepares the inputs of a pass in its own way"),
        (ShiftingLater, "ShiftingLater prepares the inputs of a pass in its own way"),
        (Forgetting, "Forgetting prepares the inputs of a pass in its own way"),
        (Sparing, "Sparing has a decoding loop of its own"),
    ],
)
def test_a_model_with_ways_of_its_own_writes_what_it_writes_by_itself(kind: type[LlamaForCausalLM], why: str) -> None:
    model = built(kind)
    for door in (False, True):
        with pytest.warns(UserWarning, match=why):
            text = assert_as_generate(model, PROMPT, door=door, **REQUEST)
    assert not torch.equal(text, generate(random_model(3), PROMPT, **REQUEST))


@pytest.mark.parametrize("handed_on", [False, True], ids=["called", "handed to generate"])
def test_the_warning_names_the_line_that_asked(handed_on: bool) -> None:
    model: Any = built(Shifting)
    handed = partial(model.generate, custom_generate=lookahead_generate)
    ask = handed if handed_on else partial(lookahead_generate, model)
    with pytest.warns(UserWarning, match="own loop") as caught:
        ask(PROMPT, **REQUEST)
    assert [warning.filename for warning in caught] == [__file__]


def test_of_a_preparation_counts_what_passes_of_this_text_read() -> None:
    model = built(ShiftingLater)
    with fast():  # the last pass reads the token at position 20, and writes the one behind it
        assert_as_generate(model, PROMPT, **{**REQUEST, "max_new_tokens": 14})
    with pytest.warns(UserWarning, match="prepares the inputs"):
        lookahead(model, PROMPT, **{**REQUEST, "max_new_tokens": 15})


def test_what_is_set_on_a_model_itself_counts_too() -> None:
    model = built(LlamaForCausalLM)
    model.prepare_inputs_for_generation = types.MethodType(_shifted, model)  # type: ignore[assignment]  # a mixin's
    with pytest.warns(UserWarning, match="prepares the inputs"):
        assert_as_generate(model, PROMPT, **REQUEST)


def _shifted(self: Any, *arguments: Any, **given: Any) -> dict[str, Any]:
    inputs: dict[str, Any] = LLAMA.prepare_inputs_for_generation(self, *arguments, **given)
    return inputs if given.get("is_first_iteration") else {**inputs, "position_ids": inputs["position_ids"] + 7}


def test_what_a_model_does_with_a_finished_text_is_done_once() -> None:
    assert_as_generate(built(Talkative), PROMPT, **REQUEST)


def test_a_preparation_that_changes_nothing_is_no_hindrance() -> None:
    with fast():
        assert_as_generate(built(Harmless), PROMPT, **REQUEST)


def test_a_model_of_texts_and_pictures_is_fast_with_text_alone() -> None:
    torch.manual_seed(0)
    vision = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = AutoConfig.for_model("gemma3", text_config=SHAPE, vision_config={**vision, "image_size": 28})
    model = AutoModelForImageTextToText.from_config(config, dtype=torch.float32).eval()
    with fast():
        assert_as_generate(model, PROMPT, **REQUEST)


def test_a_model_with_hooks_is_left_to_its_own_loop() -> None:
    model = built(LlamaForCausalLM)

    def steer(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        return output if output.shape[1] > 1 else output + 0.3  # new tokens only

    model.model.layers[1].mlp.register_forward_hook(steer)
    with pytest.warns(UserWarning, match="the model has hooks"):
        text = assert_as_generate(model, PROMPT, **REQUEST)
    assert not torch.equal(text, generate(random_model(3), PROMPT, **REQUEST))
