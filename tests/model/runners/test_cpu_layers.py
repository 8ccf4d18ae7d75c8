"""A layer, and a whole pass, in one call of the kernels: what the model computes, with the same bits in every shape."""

import copy
import gc
import random
import weakref
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from hypothesis import given, strategies as st
from transformers import AutoConfig, AutoModelForCausalLM, Gemma2PreTrainedModel, PreTrainedModel

from ladechat import registry
from ladechat.decoder.hidden import TransferMaps, Want
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.kernels.library import Library
from ladechat.model.kernels.swap import products_of, round_weights_as, swap
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.runners.cpu_layers import fuse_layers
from ladechat.model.runners.logits import fill
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead
from tests.made_up_costs import moderate, shared
from tests.made_up_maps import made_up_for
from tests.model.runners.trees import random_tree
from tests.tiny import (
    SHAPE,
    VOCABULARY,
    demo_model,
    demo_prompt,
    enlarged,
    generated,
    layered_runner_for,
    random_model,
    run,
    runner_for,
    tokens_of,
)
from tools.tiny_models import tiny_model

LLAMAS: dict[str, dict[str, Any]] = {
    "llama, heads that share keys": {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10},
    "llama, biases, tied": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "mistral, window": {"model_type": "mistral", "sliding_window": 6},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3", "head_dim": 24},
    "gemma": {"model_type": "gemma", "num_key_value_heads": 1},
    "gemma2, windows, a low cap": {
        "model_type": "gemma2", "sliding_window": 6, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 5,
        "tie_word_embeddings": True, "attn_implementation": "eager",
    },
    "gemma3, windows": {"model_type": "gemma3_text", "sliding_window": 6, "num_hidden_layers": 6},
}  # fmt: skip
OTHERS = ["granite", "ministral3", "smollm3", "gpt2", "vaultgemma", "mixtral", "phi3", "cohere", "olmo2"]


QUANTIZED = ["int8", "int4"]


def changed(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model with random norms and biases: those of a new model, ones and zeros, change nothing."""
    ours = copy.deepcopy(model)
    dice = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in ours.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape, generator=dice), alpha=0.3)
    return ours


def fused(model: PreTrainedModel, library: Library, quantize: str | None = None) -> PreTrainedModel:
    """A copy of a model whose layers are one call each."""
    ours = copy.deepcopy(model)
    swap(ours, library, quantize)
    assert fuse_layers(ours, library)
    return ours


IN_TILES = "llama, in tiles"


@pytest.fixture(scope="module", params=[*LLAMAS, IN_TILES])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def original(form: str) -> PreTrainedModel:
    if form == IN_TILES:  # weights that bfloat16 holds
        in_16_bits: PreTrainedModel = changed(random_model(3, num_key_value_heads=2)).bfloat16().float()
        return in_16_bits
    return changed(random_model(3, **LLAMAS[form]))


@pytest.fixture(scope="module")
def model(form: str, original: PreTrainedModel, build_path: Path, library: Library) -> PreTrainedModel:
    if form != IN_TILES:
        return fused(original, library)
    with_tiles = Library(build_path, library.threads)
    with_tiles.tiles = True
    ours = fused(original, with_tiles)
    assert products_of(ours, with_tiles) == "AMX"
    return ours


def text_of(seed: int, length: int) -> list[int]:
    dice = random.Random(seed)
    return [dice.randrange(VOCABULARY) for _ in range(length)]


def one_by_one(runner: TreeRunner, text: list[int]) -> list[torch.Tensor]:
    """The logits after each token of a text, one a pass."""
    fill(runner, text[:1])
    found = []
    for token in text:
        found.append(runner.forward(SlotTree(token))[0].clone())
        runner.commit([0])
    return found


def test_slots_have_the_logits_of_the_model_as_it_was(original: PreTrainedModel, model: PreTrainedModel) -> None:
    runner = layered_runner_for(model)
    for seed in range(4):
        text, tree = text_of(seed, 11), random_tree(random.Random(seed), VOCABULARY)
        tree.tokens[0] = text[-1]
        fill(runner, text)
        logits = runner.forward(tree).clone()
        runner.commit([])
        for slot in range(len(tree)):
            seen = [tree.tokens[other] for other in tree.mask[slot].nonzero()[0]]
            with torch.inference_mode():
                own = original(torch.tensor([[*text[:-1], *seen]])).logits[0, -1]
            torch.testing.assert_close(logits[slot], own, atol=1e-4, rtol=1e-4)


def test_what_is_not_given_our_cache_is_computed_part_by_part(
    original: PreTrainedModel, model: PreTrainedModel
) -> None:
    tokens = torch.tensor([text_of(1, 70), text_of(2, 70)])
    with torch.inference_mode():
        torch.testing.assert_close(model(tokens).logits, original(tokens).logits, atol=1e-4, rtol=1e-4)


def test_a_pass_layer_by_layer_has_the_bits_of_one_in_one_call(model: PreTrainedModel) -> None:
    """Those with pseudo rows, with skipped layers, and of a model whose loop over layers was refused."""
    text, tree = text_of(6, 20), random_tree(random.Random(6), VOCABULARY)
    tree.tokens[0] = text[-1]
    at_once, layered, by_layers = layered_runner_for(model), layered_runner_for(model), runner_for(model)
    for runner in (at_once, layered, by_layers):
        fill(runner, text)
    assert layered.loop is not None and layered.loop.at_once is not None
    maps = made_up_for(layered, 1)["transfer"].maps
    assert isinstance(maps, TransferMaps)
    layered.loop.at_once = None
    expected, hidden = at_once.forward_hidden(tree, Want())
    assert torch.equal(at_once.forward(tree), expected)
    assert torch.equal(by_layers.forward(tree), expected)
    for want in (Want(), Want(maps, [0, 1])):
        logits, found = layered.forward_hidden(tree, want)
        assert torch.equal(logits, expected) and torch.equal(found.states, hidden.states)


def test_a_pass_is_one_call(model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = choose_runner(model, 128)
    fill(runner, [5, 6, 7])
    for layer in cast(Any, model.get_decoder()).layers:
        monkeypatch.setattr(layer, "forward", None)
    assert runner.forward(SlotTree.chain([7, 8])).shape == (2, VOCABULARY)


def test_a_token_without_an_embedding_is_refused(model: PreTrainedModel) -> None:
    runner = layered_runner_for(model)
    fill(runner, [5, 6, 7])
    for token in (VOCABULARY, -1):
        with pytest.raises(IndexError, match=f"not among {VOCABULARY} embeddings"):
            runner.forward(SlotTree.chain([7, token]))


def test_a_cache_that_has_grown_is_found_where_it_is(model: PreTrainedModel) -> None:
    runner, expected = layered_runner_for(model, 2048), runner_for(model, 2048)
    text = text_of(7, 700)
    fill(runner, text[:500])
    runner.forward(SlotTree(text[499]))
    small = runner.cache.capacity
    for one in (runner, expected):
        fill(one, text)
    assert runner.cache.capacity > small
    assert torch.equal(runner.forward(SlotTree(text[-1])), expected.forward(SlotTree(text[-1])))


def test_memory_that_the_cache_gives_back_is_free(model: PreTrainedModel) -> None:
    runner = layered_runner_for(model)
    fill(runner, [5, 6, 7])
    keys = weakref.ref(runner.cache.heads_first(0)[0])
    runner.save_memory()
    gc.collect()
    assert keys() is None


@pytest.mark.parametrize("slots", [2, 3, 12, 13, 31, 33, 64, 100, 128])
def test_a_chain_of_any_length_has_the_bits_of_one_token_a_pass(model: PreTrainedModel, slots: int) -> None:
    runner, text = layered_runner_for(model), text_of(1, 9 + slots)
    expected = one_by_one(runner, text)[9:]
    fill(runner, text[:10])
    assert torch.equal(runner.forward(SlotTree.chain(text[9:])), torch.stack(expected))


@pytest.mark.parametrize("quantize", QUANTIZED)
def test_a_tree_has_the_bits_of_one_token_a_pass_in_8_and_4_bits_too(
    original: PreTrainedModel, library: Library, quantize: str
) -> None:
    """And nearly the logits of the original, were its weights rounded: states are rounded to 8 bits besides."""
    ours, rounded = fused(original, library, quantize), copy.deepcopy(original)
    round_weights_as(ours, rounded)
    text, tree = text_of(2, 30), random_tree(random.Random(2), VOCABULARY)
    tree.tokens[0] = text[-1]
    runner = layered_runner_for(ours)
    fill(runner, text)
    logits = runner.forward(tree).clone()
    path = tree.mask[-1].nonzero()[0]
    seen = [*text[:-1], *(tree.tokens[slot] for slot in path)]
    expected = one_by_one(layered_runner_for(ours), seen)
    assert torch.equal(logits[path], torch.stack(expected)[-len(path) :])
    with torch.inference_mode():
        own = rounded(torch.tensor([seen])).logits[0, -1]
    assert (logits[-1] - own).norm() < 0.2 * own.norm()


@given(seed=st.integers(0, 2**31), cached=st.integers(0, 40))
def test_a_tree_of_any_form_has_the_bits_of_one_token_a_pass(model: PreTrainedModel, seed: int, cached: int) -> None:
    runner, text, tree = (
        layered_runner_for(model),
        text_of(seed, cached + 1),
        random_tree(random.Random(seed), VOCABULARY),
    )
    tree.tokens[0] = text[-1]
    fill(runner, text)
    logits = runner.forward(tree).clone()
    leaf = random.Random(seed).randrange(len(tree))
    path = tree.mask[leaf].nonzero()[0]
    expected = one_by_one(runner, [*text[:-1], *(tree.tokens[slot] for slot in path)])
    assert torch.equal(logits[path], torch.stack(expected)[-len(path) :])


def test_a_prompt_read_in_chunks_has_the_bits_of_one_token_a_pass(model: PreTrainedModel) -> None:
    text = text_of(5, 150)
    expected = one_by_one(layered_runner_for(model), text)[-1]
    for chunk in (7, 64, 512):
        runner = layered_runner_for(model, chunk=chunk)
        fill(runner, text)
        assert torch.equal(runner.forward(SlotTree(text[-1]))[0], expected)


def test_the_bundled_model_writes_what_it_wrote(library: Library) -> None:
    ours, prompt = copy.deepcopy(demo_model()), demo_prompt("What is the n-gram pool?")
    swap(ours, library)
    assert fuse_layers(ours, library)
    assert tokens_of(run(lookahead(runner_for(ours)), prompt, 60)) == generated(demo_model(), prompt, 60)


def test_hidden_states_and_skipped_layers_are_there_as_before(library: Library) -> None:
    runner = choose_runner(fused(changed(random_model(3)), library), 128)
    assert runner.capabilities.logits_only is None and runner.capabilities.tree_attention


@pytest.mark.parametrize("name", registry.DECODERS)
@pytest.mark.parametrize("gemma", [name for name in LLAMAS if name.startswith("gemma")])
def test_every_decoder_writes_with_gemma_what_generate_writes(gemma: str, name: str, library: Library) -> None:
    model, prompt = random_model(3, **LLAMAS[gemma]), text_of(3, 12)
    runner = layered_runner_for(fused(model, library))
    decoder = registry.make(name, runner, shared(moderate, trained=made_up_for(runner, 1)))
    assert tokens_of(run(decoder, [*prompt, *prompt], 30)) == written_by_generate(gemma)


@cache
def written_by_generate(gemma: str) -> list[int]:
    return generated(random_model(3, **LLAMAS[gemma]), 2 * text_of(3, 12), 30)


def test_a_cap_that_the_model_names_and_does_not_apply_is_not_applied(library: Library) -> None:
    """Gemma 3 in transformers; and Gemma 2 where transformers let it have an attention that ignores caps."""
    for name, attention in (("gemma3_text", "eager"), *[("gemma2", "sdpa")] * Gemma2PreTrainedModel._supports_sdpa):
        ours = copy.deepcopy(
            random_model(3, name, attn_logit_softcapping=30.0, attn_implementation=attention, sliding_window=6)
        )
        before = ours.get_decoder().layers[0].self_attn.attn_logit_softcapping
        swap(ours, library)
        assert not fuse_layers(ours, library)
        assert {layer.self_attn.attn_logit_softcapping for layer in ours.get_decoder().layers} == {before}


def test_the_language_part_of_a_model_that_also_sees_is_fused_as_well(library: Library) -> None:
    text = {**SHAPE, "sliding_window": 6, "num_hidden_layers": 6}
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = {**sizes, "image_size": 28, "patch_size": 14}
    config = AutoConfig.for_model("gemma3", text_config=text, vision_config=vision, mm_tokens_per_image=4)
    torch.manual_seed(3)
    model = enlarged(AutoModelForCausalLM.from_config(config))
    ours, prompt = fused(model, library), text_of(4, 20)
    assert tokens_of(run(lookahead(runner_for(ours)), prompt, 30)) == generated(model, prompt, 30)


@pytest.mark.parametrize("model_type", OTHERS)
def test_a_model_of_another_form_is_left_as_it_is(model_type: str, library: Library) -> None:
    """The first three have the parts of a Llama, and combine them in another way; the others have other parts."""
    changes: dict[str, Any] = {"residual_multiplier": 0.5} if model_type == "granite" else {}
    ours = copy.deepcopy(tiny_model(model_type, **changes)).float()
    swap(ours, library)
    assert not fuse_layers(ours, library)
    assert not any("forward" in vars(layer) for layer in getattr(ours.get_decoder(), "layers", ()))
