"""What cannot be loaded is refused in one sentence that says why."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from transformers import AutoConfig, AutoModelForSeq2SeqLM, PreTrainedModel

from ladechat.model.checkpoint.files import LoadError, LoadErrorCode
from ladechat.model.loading.device import choose_device, choose_dtype
from tests.checkpoints import save
from tests.engine.tokenizers import sentencepiece
from tests.model.loading.llama import LAYERS, assert_not_loaded
from tests.model.refusals import assert_refused, assert_told
from tests.scripted_checkpoint import change


@pytest.mark.parametrize(
    ("entry", "value", "says"),
    [
        ("vocab_size", -1, "says that it has -1 tokens (vocab_size)"),
        ("vocab_size", 10**30, "tokens (vocab_size)"),
        ("hidden_size", 4 * 10**25, "numbers in a hidden state (hidden_size)"),
        ("num_attention_heads", 0, "not of the kind that belongs there"),
        ("num_hidden_layers", 0, "it has 0 layers"),
        ("num_hidden_layers", -3, "it has -3 layers"),
        ("max_position_embeddings", -4, "says that it has -4 positions (max_position_embeddings)"),
        ("max_position_embeddings", "many", "its max_position_embeddings is not of the kind that belongs there"),
        ("sliding_window", "x", "says that it has x positions in a sliding window (sliding_window)"),
        ("quantization_config", [1], "not of the kind that belongs there"),
        ("rope_parameters", "x", "its rope_parameters is not of the kind that belongs there"),
        ("eos_token_id", "</s>", "its eos_token_id is not of the kind that belongs there"),
        ("eos_token_id", [2, "</s>"], "its eos_token_id is not of the kind that belongs there"),
        ("eos_token_id", {"a": 1}, "its eos_token_id is not of the kind that belongs there"),
        ("eos_token_id", 2.5, "its eos_token_id is not of the kind that belongs there"),
    ],
)
def test_an_entry_of_config_json_that_no_model_has_is_named(
    checkpoint: Path, entry: str, value: object, says: str
) -> None:
    change(checkpoint / "config.json", **{entry: value})
    assert_not_loaded(checkpoint, "unsupported_architecture", says)


@pytest.mark.parametrize("file", ["config.json", "special_tokens_map.json"])
def test_a_file_that_is_no_object_is_refused_by_its_name(checkpoint: Path, file: str) -> None:
    (checkpoint / file).write_text("[]")
    assert_not_loaded(checkpoint, "load_failed", f"The {file} of the model holds a list")


def test_an_encoder_decoder_is_refused_by_its_type(tmp_path: Path) -> None:
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 50}
    model = AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model("t5", **sizes))
    assert_not_loaded(save(tmp_path, model, sentencepiece()), "unsupported_architecture", "'t5'")


@pytest.mark.parametrize("model_type", ["bart", "distilbert"])
def test_what_could_be_loaded_in_part_or_with_a_head_is_refused_too(model_type: str, tmp_path: Path) -> None:
    AutoConfig.for_model(model_type).save_pretrained(tmp_path)
    assert_not_loaded(tmp_path, "unsupported_architecture", f"'{model_type}'")


@pytest.mark.parametrize("config", [{"model_type": "not_yet_invented"}, {}, {"model_type": None}, {"model_type": 3}])
def test_an_architecture_that_transformers_does_not_know_is_refused(checkpoint: Path, config: dict[str, Any]) -> None:
    (checkpoint / "config.json").write_text(json.dumps(config))
    assert_not_loaded(checkpoint, "unsupported_architecture", "the model")


@pytest.mark.parametrize(
    "content", [b"", b"not safetensors at all", b"\xff" * 64, None], ids=["empty", "text", "junk", "cut off"]
)
def test_weights_that_cannot_be_read_are_refused(checkpoint: Path, content: bytes | None) -> None:
    file = checkpoint / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100] if content is None else content)
    assert_not_loaded(checkpoint, "load_failed", "the model cannot be loaded")


def test_a_missing_shard_is_refused(in_shards: Path) -> None:
    max(in_shards.glob("*.safetensors")).unlink()
    assert_not_loaded(in_shards, "load_failed", "the model cannot be loaded")


@pytest.mark.parametrize("change_of", [{"intermediate_size": 64}, {"num_hidden_layers": LAYERS + 1}], ids=str)
def test_weights_that_are_missing_or_of_another_shape_are_refused_and_not_made_up(
    checkpoint: Path, change_of: dict[str, int]
) -> None:
    change(checkpoint / "config.json", **change_of)
    assert_not_loaded(checkpoint, "load_failed", "the model lacks 9 of the weights")  # of a layer


def test_a_missing_tokenizer_is_refused(checkpoint: Path) -> None:
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    assert "tokenizer.json" in assert_not_loaded(checkpoint, "load_failed", "no tokenizer").hint


def test_a_broken_tokenizer_is_refused(checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").write_text("{}")
    assert_not_loaded(checkpoint, "load_failed", "The tokenizer.json of the model cannot be read")


@pytest.mark.parametrize("device", ["abacus", "", "cpu:x", "cuda:99", "xpu", "meta:7:1"])
def test_a_device_that_is_not_here_is_refused(checkpoint: Path, device: str) -> None:
    assert "--device" in assert_not_loaded(checkpoint, "load_failed", repr(device), device=device).hint


@given(st.text(max_size=12))
def test_any_name_of_a_device_is_a_device_or_refused(name: str) -> None:
    try:
        choose_device(name)
    except LoadError as error:
        assert_told(error, "load_failed", repr(name))


NO_TYPES = ["", "float31", "int8", "bool", "nn", "Tensor", "__name__", "complex64", "nonsense", "float8_e4m3fn"]
NO_TYPES += ["float8_e5m2", "float4_e2m1fn_x2"]


@pytest.mark.parametrize("dtype", NO_TYPES)
def test_a_type_that_no_model_computes_in_is_refused(dtype: str) -> None:
    says = f"There is no floating-point type {dtype!r} that a model computes in"
    error = assert_refused(lambda: choose_dtype(dtype, torch.device("cpu"), None), "load_failed", says)
    assert "--dtype" in error.hint and "float32" in error.hint


@pytest.mark.parametrize(
    ("raised", "code", "hint"),
    [
        (torch.OutOfMemoryError("CUDA out of memory.\nTried"), "out_of_memory", "--dtype bfloat16"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out_of_memory", "--dtype bfloat16"),
        (RuntimeError("MPS backend out of memory (allocated)"), "out_of_memory", "--dtype bfloat16"),
        (RuntimeError("first line\nsecond line"), "load_failed", "files of the checkpoint"),
    ],
)
def test_what_torch_raises_on_the_way_to_the_device_is_told_in_one_sentence(
    checkpoint: Path, raised: Exception, code: LoadErrorCode, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def to(self: PreTrainedModel, device: torch.device) -> PreTrainedModel:
        raise raised

    monkeypatch.setattr(PreTrainedModel, "to", to)
    assert hint in assert_not_loaded(checkpoint, code, "the model").hint
