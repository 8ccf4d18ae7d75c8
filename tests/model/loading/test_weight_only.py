"""Weights that are quantised here: every decoder writes the text of their own plain decoding."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ladechat.decoder.loop import Decoder
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.checkpoint.files import LoadErrorCode
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.swap import PackedEmbedding, PackedLinear
from ladechat.model.loaded import LoadedModel
from ladechat.model.loading import quantization
from ladechat.model.loading.quantization import check_weight_only
from ladechat.model.loading.weights import load_weights
from ladechat.registry import DECODERS, Shared, make
from ladechat.tuning.costs import PassCosts
from tests.checkpoints import load_on_cpu, save
from tests.engine.tokenizers import byte_level
from tests.made_up_maps import made_up_for
from tests.model.refusals import assert_refused
from tests.tiny import DEMO, demo_prompt, run, tokens_of
from tools.tiny_models import tiny_model

Load = Callable[..., LoadedModel]


@pytest.fixture(scope="module")
def loaded(build: Build) -> Load:
    def loaded(quantize: str | None = "int8", dtype: str = "auto", kernels: Build | None = build) -> LoadedModel:
        return load_on_cpu(DEMO, dtype, quantize=quantize, kernels=kernels)

    return loaded


@pytest.fixture(scope="module", params=["int8", "int4"])
def model(request: pytest.FixtureRequest, loaded: Load) -> LoadedModel:
    return loaded(request.param)


def test_the_facts_are_those_of_the_model_and_its_quantisation(model: LoadedModel, loaded: Load) -> None:
    plain = loaded(None)
    assert model.quantization in ("int8", "int4") and plain.quantization is None
    assert (model.parameters, model.dtype) == (plain.parameters, "float32")
    kinds = {part.matrix.kind for part in model.model.modules() if isinstance(part, PackedLinear)}
    assert len(kinds) == (1 if model.quantization == "int8" else 2)  # the output layer has 8 bits always
    assert isinstance(model.model.get_input_embeddings(), PackedEmbedding)

    def packed(loaded: LoadedModel) -> int:
        return sum(part.matrix.tensors[0].nbytes for part in loaded.model.modules() if isinstance(part, PackedLinear))

    assert packed(model) < 0.6 * packed(plain)


@pytest.mark.parametrize("question", ["What is the n-gram pool?", "Write a function that adds two numbers."])
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


def test_a_slots_logits_have_the_same_bits_however_many_others_are_in_its_pass(model: LoadedModel) -> None:
    prompt = demo_prompt("What is the n-gram pool?")
    runner = model.runner
    list(runner.prefill(prompt[:1]))
    together = runner.forward(SlotTree.chain(prompt)).clone()
    runner.commit([])
    for token, logits in zip(prompt, together, strict=True):
        assert torch.equal(runner.forward(SlotTree(token))[0], logits)
        runner.commit([0])


def test_that_only_a_part_is_quantised_is_said(loaded: Load, build: Build, tmp_path: Path) -> None:
    folder = save(tmp_path, tiny_model("mixtral", intermediate_size=400, vocab_size=len(byte_level())))
    assert any(
        "of the weights are quantised" in one for one in load_on_cpu(folder, quantize="int8", kernels=build).notices
    )
    assert not any("quantised" in notice for notice in loaded().notices)


def test_torchao_quantises_on_other_devices_while_weights_are_read() -> None:
    quantised = load_weights(DEMO, "the model", torch.device("cpu"), torch.float32, False, lambda _: None, None, "int8")
    kinds = {type(part.weight).__name__ for part in quantised.modules() if isinstance(part, nn.Linear)}
    assert kinds == {"Int8Tensor", "Parameter"}  # the output layer stays, which the embeddings share


def test_what_is_quantised_already_is_left_so(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.model.load_checkpoint.quantization_method", lambda config: "gptq")
    assert_refused(loaded, "load_failed", "is quantised already, with gptq")


class NoBuild(Build):
    """A build that has failed."""

    def library(self) -> Path:
        raise BuildError("There is no C++ compiler.")


@pytest.mark.parametrize("kernels", [None, NoBuild()])
def test_without_kernels_nothing_is_quantised_on_a_cpu(loaded: Load, kernels: Build | None) -> None:
    says = "--quantize int4 needs ladechat's kernels for the CPU"
    error = assert_refused(lambda: loaded("int4", kernels=kernels), "load_failed", says)
    assert "leave --quantize away" in error.hint.lower()


def test_on_a_cpu_another_type_is_refused(loaded: Load) -> None:
    assert_refused(lambda: loaded("int8", dtype="bfloat16"), "load_failed", "in float32, not in bfloat16")


@pytest.mark.parametrize(
    ("device", "dtype", "missing", "code", "named"),
    [
        ("cuda", torch.float16, None, "load_failed", "not in float16"),
        ("cuda", torch.bfloat16, "accelerate", "missing_package", "accelerate"),
        ("cuda", torch.bfloat16, "torchao", "missing_package", "needs torchao"),
        ("mps", torch.float16, None, "load_failed", "Weights of 4 bits need a CPU or a CUDA GPU"),
    ],
)
def test_what_four_bits_need_elsewhere_is_named(
    device: str,
    dtype: torch.dtype,
    missing: str | None,
    code: LoadErrorCode,
    named: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here: Any = lambda name: None if name == missing else object()  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", here)
    monkeypatch.setattr(quantization, "is_accelerate_available", lambda: missing != "accelerate")
    place = torch.device(device)
    assert_refused(lambda: check_weight_only("int4", "the model", None, place, dtype), code, named)
