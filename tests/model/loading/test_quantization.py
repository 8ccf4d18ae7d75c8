"""A quantised checkpoint is loaded where transformers can, else refused by name with what is missing."""

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig
from transformers.quantizers import quantizer_finegrained_fp8

from ladechat.model.checkpoint.files import in_words
from ladechat.model.loading import needed_memory
from ladechat.model.loading.quantization import quantization_method
from tests.llama2 import CONFIG, save_checkpoint
from tests.model.loading.llama import assert_not_loaded, loaded
from tests.scripted_checkpoint import change

BLOCK = 4
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [BLOCK, BLOCK]}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_checkpoint(tmp_path / "checkpoint")


def quantise(folder: Path, settings: dict[str, Any]) -> Path:
    """Let a checkpoint's configuration say so."""
    change(folder / "config.json", quantization_config=settings)
    return folder


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "bitsandbytes"),
        ({"load_in_8bit": True}, "bitsandbytes"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}, "awq"),
        (
            {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {}},
            "compressed-tensors",
        ),
        ({"quant_method": "aqlm"}, "aqlm"),
    ],
)
def test_the_package_that_a_method_needs_is_named_with_how_to_install_it(
    checkpoint: Path, settings: dict[str, Any], method: str
) -> None:
    says = f"is quantised with {method}, which needs the package "
    error = assert_not_loaded(quantise(checkpoint, settings), "missing_package", says)
    package = str(error).split("the package ")[1].split(", and that")[0]
    assert shlex.join(("-m", "pip", "install", package)) in error.hint


def test_a_checkpoint_of_torchaos_names_it_where_it_is_not(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchao.core.config", None)
    quantise(checkpoint, {"quant_method": "torchao", "quant_type": {}})
    assert_not_loaded(checkpoint, "missing_package", "is quantised with torchao, which needs the package torchao, ")


def test_without_accelerate_fp8_names_it(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantizer_finegrained_fp8, "is_accelerate_available", lambda: False)
    assert_not_loaded(quantise(checkpoint, FP8), "missing_package", "which needs the package accelerate")


@pytest.mark.parametrize("method", ["spqr", "higgs", "fbgemm_fp8"])
def test_a_method_that_needs_a_gpu_is_refused_for_that_where_there_is_none(
    checkpoint: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    quantise(checkpoint, {"quant_method": method})
    error = assert_not_loaded(checkpoint, "load_failed", f"is quantised with {method}")
    assert "GPU" in str(error) and "not quantised" in error.hint


@pytest.mark.parametrize(
    ("settings", "method"), [({"quant_method": "exl2"}, "exl2"), ({"bits": 4}, "unknown"), ({"quant_method": 7}, "7")]
)
def test_a_method_that_transformers_does_not_know_is_refused_by_name(
    checkpoint: Path, settings: dict[str, Any], method: str
) -> None:
    assert_not_loaded(quantise(checkpoint, settings), "load_failed", f"is quantised with {method}, which cannot")


def pack_as_fp8(folder: Path) -> dict[str, torch.Tensor]:
    """Pack the projections of a checkpoint by blocks, each with its scale; what they are worth when unpacked."""
    worth: dict[str, torch.Tensor] = {}
    packed: dict[str, torch.Tensor] = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        packed[name] = weight
        if name.endswith("proj.weight"):
            rows, columns = (size // BLOCK for size in weight.shape)
            blocks = weight.float().reshape(rows, BLOCK, columns, BLOCK).transpose(1, 2)
            scales = blocks.abs().amax((2, 3)) / torch.finfo(torch.float8_e4m3fn).max
            low = (blocks / scales[:, :, None, None]).to(torch.float8_e4m3fn)
            worth[name] = (low.float() * scales[:, :, None, None]).transpose(1, 2).reshape(weight.shape)
            packed[name] = low.transpose(1, 2).reshape(weight.shape).contiguous()
            packed[f"{name}_scale_inv"] = scales
    save_file(packed, folder / "model.safetensors", metadata={"format": "pt"})
    return worth


def test_fp8_is_unpacked_where_nothing_can_compute_with_it_and_memory_is_asked_for_that(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(quantizer_finegrained_fp8, "is_accelerate_available", lambda: True)
    plain = loaded(checkpoint)
    worth = pack_as_fp8(quantise(checkpoint, FP8))
    model = loaded(checkpoint)
    assert (model.quantization, model.dtype, model.parameters) == ("fp8", "float32", plain.parameters)
    weights = model.model.state_dict()
    assert worth and all(torch.allclose(weights[name], value, atol=1e-6) for name, value in worth.items())
    monkeypatch.setattr(needed_memory, "free_memory", lambda device: 1000)
    assert_not_loaded(checkpoint, "out_of_memory", f"weights {in_words(4 * plain.parameters)}")


def test_plain_weights_have_no_method(checkpoint: Path) -> None:
    assert quantization_method(AutoConfig.for_model(**CONFIG)) is None
    assert loaded(checkpoint).quantization is None
