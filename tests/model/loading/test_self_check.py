"""A model that would decode wrongly is refused before it answers: by the tokens that may be chosen, with the reason."""

from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaForCausalLM, PreTrainedModel

from ladechat.decoder.loop import Decoder
from ladechat.model.loading.self_check import check_trees, choose_runner
from ladechat.model.runners.cache_probe import SingleTokenOnly, UnsupportedModel
from ladechat.model.runners.single_token import SingleTokenRunner
from ladechat.model.runners.tree import TreeRunner
from tests.tiny import demo_model, generated, random_model, run, runner_for, tokens_of
from tools.tiny_models import tiny_model

PROMPT = [5, 8, 13, 21, 34, 55, 8, 13, 21]


class RulesOut(torch.nn.Module):
    """A head that rules out all tokens but every third, with this number."""

    def __init__(self, head: torch.nn.Module, number: float, keep: int = 3) -> None:
        super().__init__()
        self.head, self.number, self.keep = head, number, keep

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(hidden)
        out = torch.arange(logits.shape[-1], device=logits.device) % self.keep != 0
        return logits.masked_fill(out, self.number)


class Deaf(LlamaForCausalLM):
    """Sees all that came before, whatever its mask says."""

    def forward(self, *arguments: Any, attention_mask: Any = None, **given: Any) -> Any:
        if attention_mask is not None and attention_mask.dim() == 4:
            slots, places = attention_mask.shape[-2:]
            attention_mask = torch.ones(1, 1, slots, places).tril(places - slots).bool()
        return super().forward(*arguments, attention_mask=attention_mask, **given)


def llama(kind: type[LlamaForCausalLM] = LlamaForCausalLM, **changes: Any) -> PreTrainedModel:
    """A random llama of one's own, which may be changed."""
    like = random_model(3, **changes)
    model: PreTrainedModel = kind(like.config).eval()
    model.load_state_dict(like.state_dict())
    return model


def with_few_bits(numbers: int) -> PreTrainedModel:
    """A model whose activations have so many values on either side of 0, with one scale for all tokens of a pass."""
    model = llama()
    for layer in model.model.layers:
        layer.mlp.register_forward_hook(
            lambda module, inputs, output: torch.round(output / (scale := output.abs().max() / numbers)) * scale
        )
    return model


def why_single(model: PreTrainedModel) -> str | None:
    """Why a model is not trusted with drafts; None if it is."""
    return choose_runner(model, 64).capabilities.single_token


@pytest.mark.parametrize("number", [-1e4, -100.0, -torch.inf, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("keep", [3, 30])
def test_a_head_that_rules_tokens_out_does_not_hide_a_model_that_is_deaf_to_masks(number: float, keep: int) -> None:
    honest, deaf = llama(), llama(Deaf)
    for model in (honest, deaf):
        model.lm_head = RulesOut(model.lm_head, number, keep)
    assert why_single(honest) is None
    assert "does not follow explicit positions with a 4-D attention mask" in str(why_single(deaf))


@pytest.mark.parametrize("vocabulary", [1, 2, 3, 5, 8, 977, 1954])
def test_small_and_odd_vocabularies_are_judged_too(vocabulary: int) -> None:
    tokens: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    assert why_single(llama(vocab_size=vocabulary, **tokens)) is None
    if vocabulary > 1:
        assert why_single(llama(Deaf, vocab_size=vocabulary, **tokens)) is not None


def test_logits_that_are_not_numbers_are_called_that() -> None:
    model = llama()
    with torch.no_grad():
        model.lm_head.weight[7] = torch.nan
    with pytest.raises(UnsupportedModel, match="gives logits that are not numbers"):
        choose_runner(model, 64)


def test_quantised_activations_are_decoded_plainly_and_called_that() -> None:
    model = with_few_bits(40)
    runner = choose_runner(model, 64)
    assert isinstance(runner, SingleTokenRunner)
    assert "as quantised activations do" in str(runner.capabilities.single_token)
    assert tokens_of(run(Decoder(runner), PROMPT, 20)) == generated(model, PROMPT, 20)


@pytest.mark.parametrize(
    "which", ["the last token of a pass", "a token alone in its pass", "all tokens of longer passes"]
)
def test_hooks_that_steer_by_the_place_in_a_pass_are_found(which: str) -> None:
    def steer(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
        if which == "the last token of a pass":
            return torch.cat([output[:, :-1], output[:, -1:] + 0.5], dim=1)
        return output + 0.5 if (output.shape[1] == 1) == (which == "a token alone in its pass") else output

    model = llama()
    model.model.layers[1].mlp.register_forward_hook(steer)
    runner = choose_runner(model, 64)
    assert isinstance(runner, SingleTokenRunner)
    assert "alone or last in a pass" in str(runner.capabilities.single_token)
    assert tokens_of(run(Decoder(runner), PROMPT, 20)) == generated(model, PROMPT, 20)


def test_autocast_rounds_coarsely_and_is_no_fault_of_the_model() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert why_single(llama()) is None


def test_a_model_is_read_as_generate_would_have_it_read() -> None:
    """With a mask and the positions that it counts itself, where it takes none."""
    seen: list[dict[str, Any]] = []
    model = llama()
    forward = model.forward

    def listening(*arguments: Any, **given: Any) -> Any:
        seen.append(given)
        return forward(*arguments, **given)

    with patch.object(model, "forward", listening):
        choose_runner(model, 64)
    plain = [given for given in seen if getattr(given.get("attention_mask"), "ndim", 0) == 2]
    assert len(plain) >= 3 and all(given["attention_mask"].all() for given in plain)


def test_an_encoder_still_reads_in_both_directions() -> None:
    for model_type in ("bert", "roformer", "megatron-bert"):
        with pytest.raises(UnsupportedModel, match="both directions"):
            choose_runner(tiny_model(model_type, is_decoder=False), 64)


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


def test_memory_that_runs_out_in_the_check_is_not_the_models_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("MPS backend out of memory (MPS allocated: 17.92 GB)")

    runner = runner_for(random_model(0))
    monkeypatch.setattr(runner, "forward", failing)
    with pytest.raises(RuntimeError, match="out of memory"):
        check_trees(runner, random_model(0))


def test_a_quantised_model_may_round_coarsely_and_another_in_float32_may_not() -> None:
    model: Any = with_few_bits(15)
    with pytest.raises(SingleTokenOnly):
        check_trees(runner_for(model), model)
    model.is_quantized = True
    check_trees(runner_for(model), model)


def test_attention_that_takes_no_mask_is_told_from_a_model_that_ignores_it() -> None:
    model = random_model(7)
    flash = patch.object(model.config, "_attn_implementation_internal", "flash_attention_2")
    with flash, pytest.raises(SingleTokenOnly, match="'flash_attention_2' attention, which takes no mask"):
        TreeRunner(model, 64)
