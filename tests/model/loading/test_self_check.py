"""A model that would decode wrongly is refused before it answers."""

from unittest.mock import patch

import pytest
import torch
from transformers import AutoModelForCausalLM

from ladechat.model.loading.self_check import check_trees
from ladechat.model.runners.cache_probe import SingleTokenOnly
from ladechat.model.runners.tree import TreeRunner
from tests.tiny import demo_model, random_model, runner_for


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_models_that_follow_mask_and_positions_pass(dtype: torch.dtype) -> None:
    config = random_model(0).config
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    check_trees(runner_for(model), model)


def test_the_bundled_model_passes_and_leaves_an_empty_cache() -> None:
    runner = runner_for(demo_model())
    check_trees(runner, demo_model())
    assert list(runner.tokens) == []


def test_a_runner_that_ignores_the_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_for(random_model(0))
    attention_mask = runner._masks._on_device
    monkeypatch.setattr(runner._masks, "_on_device", lambda visible: attention_mask(visible | True))
    with pytest.raises(SingleTokenOnly):
        check_trees(runner, random_model(0))


def test_memory_that_runs_out_in_the_check_is_not_the_models_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("MPS backend out of memory (MPS allocated: 17.92 GB)")

    runner = runner_for(random_model(0))
    monkeypatch.setattr(runner, "forward", failing)
    with pytest.raises(RuntimeError, match="out of memory"):
        check_trees(runner, random_model(0))


def test_a_quantised_model_may_round_coarsely_and_another_in_float32_may_not() -> None:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(random_model(0).config, dtype=torch.float32).eval()
    for layer in model.model.layers:  # as where activations have few bits, with one scale for all tokens of a pass
        layer.mlp.register_forward_hook(
            lambda module, inputs, output: torch.round(output / (scale := output.abs().max() / 15)) * scale
        )
    with pytest.raises(SingleTokenOnly):
        check_trees(runner_for(model), model)
    model.is_quantized = True
    check_trees(runner_for(model), model)


def test_attention_that_takes_no_mask_is_told_from_a_model_that_ignores_it() -> None:
    model = random_model(7)
    flash = patch.object(model.config, "_attn_implementation_internal", "flash_attention_2")
    with flash, pytest.raises(SingleTokenOnly, match="'flash_attention_2' attention, which takes no mask"):
        TreeRunner(model, 64)
