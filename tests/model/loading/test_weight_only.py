"""Weights that are quantised while they are read: every decoder writes the text of their own plain decoding."""

from typing import Any

import pytest
import torch
from torch import nn

from ladechat.decoder.loop import Decoder
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.checkpoint.files import LoadErrorCode, in_words
from ladechat.model.load import LoadedModel
from ladechat.model.loading import memory, quantization
from ladechat.model.loading.quantization import check_weight_only
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import DECODERS, Shared, make
from ladechat.tuning.costs import PassCosts
from tests.made_up_maps import made_up_for
from tests.model.loading.llama import assert_not_loaded, loaded
from tests.model.refusals import assert_refused
from tests.tiny import DEMO, demo_prompt, run, tokens_of

INT8 = {"dtype": "float32", "quantize": "int8"}


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return loaded(DEMO, **INT8)


def bytes_of(model: LoadedModel) -> int:
    """What the weights take, those of a packed matrix with their scales."""
    total = 0
    weight: Any
    for weight in model.model.parameters():
        parts = (weight.qdata, weight.scale) if hasattr(weight, "qdata") else (weight,)
        total += sum(part.numel() * part.element_size() for part in parts)
    return total


def test_the_facts_are_those_of_the_model_and_its_quantisation(model: LoadedModel) -> None:
    plain = loaded(DEMO, dtype="float32")
    assert (model.quantization, plain.quantization) == ("int8", None)
    assert (model.parameters, model.dtype) == (plain.parameters, "float32")
    kinds = {type(part.weight).__name__ for part in model.model.modules() if isinstance(part, nn.Linear)}
    assert kinds == {"Int8Tensor", "Parameter"}  # the output layer stays, which the embeddings share
    assert bytes_of(model) < bytes_of(plain) / 2
    assert isinstance(model.runner, TreeRunner)


@pytest.mark.full
@pytest.mark.parametrize(
    "question",
    ["What is the n-gram pool?", "Write a function that adds two numbers."],
)
def test_every_decoder_writes_what_plain_decoding_of_the_quantised_model_writes(
    model: LoadedModel, question: str
) -> None:
    prompt = demo_prompt(question)
    expected = tokens_of(run(Decoder(model.runner), prompt))
    trained = made_up_for(model.runner)
    for name in DECODERS:
        decoder = make(name, model.runner, Shared(PassCosts(model.runner), trained=trained))
        assert tokens_of(run(decoder, prompt)) == expected, name
    assert len(run(make("lookahead", model.runner), prompt)) < len(expected)


def test_a_slots_logits_hardly_hang_on_how_many_others_are_in_its_pass(model: LoadedModel) -> None:
    """As without quantisation: the kernel unpacks a matrix and multiplies, so that passes differ by rounding only."""
    prompt = demo_prompt("What is the n-gram pool?")
    runner = model.runner
    list(runner.prefill(prompt[:1]))
    together = runner.forward(SlotTree.chain(prompt))
    runner.commit([])
    one_by_one = []
    for token in prompt:
        one_by_one.append(runner.forward(SlotTree.chain([token]))[0])
        runner.commit([0])
    assert (together - torch.stack(one_by_one)).abs().max() < 1e-3


def test_the_memory_asked_for_is_that_of_the_quantised_weights(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = [part.weight for part in model.model.modules() if isinstance(part, nn.Linear)][:-1]
    needed = bytes_of(model) + 4 * max(weight.numel() for weight in weights)
    monkeypatch.setattr(memory, "free_memory", lambda device: 1000)
    assert_not_loaded(DEMO, "out_of_memory", f"weights {in_words(needed)}", **INT8)


def test_what_is_quantised_already_is_left_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.model.load.quantization_method", lambda config: "gptq")
    assert_not_loaded(DEMO, "load_failed", "is quantised already, with gptq", **INT8)


def test_four_bits_are_refused_where_there_is_no_kernel_for_them() -> None:
    says = "Weights of 4 bits need a CUDA GPU"
    assert "--quantize int8" in assert_not_loaded(DEMO, "load_failed", says, dtype="bfloat16", quantize="int4").hint


@pytest.mark.parametrize(
    ("dtype", "accelerate", "code", "named"),
    [(torch.float16, True, "load_failed", "not in float16"), (torch.bfloat16, False, "missing_package", "accelerate")],
)
def test_what_four_bits_need_on_a_gpu_is_named(
    dtype: torch.dtype, accelerate: bool, code: LoadErrorCode, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "is_accelerate_available", lambda: accelerate)
    cuda = torch.device("cuda")
    assert_refused(lambda: check_weight_only("int4", "the model", None, cuda, dtype), code, named)
