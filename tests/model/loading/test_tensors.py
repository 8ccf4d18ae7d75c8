"""What runs is the model that the checkpoint holds, or nothing: no tensor is missing, left over, or not a number."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from ladechat.model.loading.weights import load_weights
from tests.checkpoints import save
from tests.engine.tokenizers import sentencepiece
from tests.model.loading.llama import LAYERS, assert_not_loaded, loaded
from tests.scripted_checkpoint import change


def change_weights(checkpoint: Path, how: Callable[[dict[str, Tensor]], object]) -> None:
    file = checkpoint / "model.safetensors"
    weights = load_file(file)
    how(weights)
    save_file(weights, file, metadata={"format": "pt"})


def add(checkpoint: Path, *names: str) -> None:
    change_weights(checkpoint, lambda weights: weights.update({name: torch.ones(4) for name in names}))


@pytest.mark.parametrize("layers", [1, LAYERS - 1])
def test_a_layer_that_config_json_leaves_out_is_named_and_the_rest_not_run(checkpoint: Path, layers: int) -> None:
    change(checkpoint / "config.json", num_hidden_layers=layers)
    error = assert_not_loaded(checkpoint, "load_failed", f"does not describe, such as 'model.layers.{layers}.")
    assert "num_hidden_layers" in error.hint


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.1.self_attn.q_norm.weight",
        "model.layers.0.mlp.gate_proj.lora_A.weight",
        f"model.layers.{LAYERS}.mlp.up_proj.weight",
        "model.layers.9\n9.mlp.up_proj.weight",
        "model.norm.bias",
        "lm_head.bias",
    ],
)
def test_a_tensor_that_a_layer_would_be_computed_with_is_named_and_not_left_out(checkpoint: Path, name: str) -> None:
    if "\n" in name:
        name = f"model.layers.0.{name}"
    add(checkpoint, name)
    assert_not_loaded(checkpoint, "load_failed", repr(name)[:80])


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "model.layers.0.self_attn.rotary_emb.cos_cached",
        "model.layers.1.attention.masked_bias",
        "model.layers.1.attn.bias",
        "model.layers.1.self_attn.k_scale",
        "v_head.summary.weight",
        "mtp.layers.0.mlp.up_proj.weight",
        "model.mtp_layers.0.mlp.up_proj.weight",
        "vision_tower.blocks.0.weight",
    ],
)
def test_what_honest_checkpoints_hold_besides_is_no_reason_to_refuse_them(
    checkpoint: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    add(checkpoint, name)
    assert loaded(checkpoint).layers == LAYERS
    assert "rotary_emb.inv_freq" in name or f"not used, such as '{name}'" in caplog.text


def test_layers_for_drafts_that_config_json_counts_are_no_layers_of_the_model(checkpoint: Path) -> None:
    add(checkpoint, f"model.layers.{LAYERS}.eh_proj.weight", f"model.layers.{LAYERS}.mlp.up_proj.weight")
    change(checkpoint / "config.json", num_nextn_predict_layers=1)
    assert loaded(checkpoint).layers == LAYERS
    add(checkpoint, f"model.layers.{LAYERS + 1}.mlp.up_proj.weight")
    assert_not_loaded(checkpoint, "load_failed", f"model.layers.{LAYERS + 1}.")


def test_a_layer_too_many_is_found_without_the_prefix_of_the_base_model_too(tmp_path: Path) -> None:
    config = AutoConfig.for_model("gpt2", n_layer=2, n_head=2, n_embd=8, n_positions=32, vocab_size=64)
    folder = save(tmp_path / "gpt2", AutoModelForCausalLM.from_config(config).transformer, sentencepiece())
    change(folder / "config.json", n_layer=1, tie_word_embeddings=True)
    assert_not_loaded(folder, "load_failed", "h.1.")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers_are_called_what_they_are(checkpoint: Path, value: float) -> None:
    name = "model.layers.1.mlp.down_proj.weight"
    change_weights(checkpoint, lambda weights: weights[name][3, 5:6].fill_(value))
    assert_not_loaded(checkpoint, "load_failed", f"no finite numbers (NaN or infinite), as float32, such as {name}.")


def test_numbers_that_only_float16_cannot_hold_are_told_of_with_what_can(checkpoint: Path) -> None:
    change_weights(checkpoint, lambda weights: weights["model.norm.weight"][:1].fill_(1e6))
    assert loaded(checkpoint).dtype == "float32"
    assert "bfloat16" in assert_not_loaded(checkpoint, "load_failed", "as float16", dtype="float16").hint


def test_an_output_layer_may_switch_tokens_off(tmp_path: Path) -> None:
    config = AutoConfig.for_model("gptj", n_layer=1, n_head=2, n_embd=16, rotary_dim=4, n_positions=32, vocab_size=64)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        model.lm_head.bias[5:9] = float("-inf")
    model.save_pretrained(tmp_path)
    read = load_weights(tmp_path, "the model", torch.device("cpu"), torch.float32, False, lambda _: None)
    assert torch.equal(read.lm_head.bias, model.lm_head.bias)
