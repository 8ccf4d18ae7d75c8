"""A decoder layer in one call of the kernels: what the model computes, with the same bits in every shape of pass."""

import copy
import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedModel

from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.kernels.library import Library
from ladechat.model.kernels.swap import swap
from ladechat.model.loading.self_check import choose_runner
from ladechat.model.runners.cpu_layers import fuse_layers
from ladechat.model.runners.logits import fill
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead
from tests.model.runners.trees import random_tree
from tests.tiny import VOCABULARY, demo_model, demo_prompt, generated, random_model, run, runner_for, tokens_of
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


def fused(model: PreTrainedModel, library: Library) -> PreTrainedModel:
    """A copy of a model whose layers are one call each; its norms and biases, which change nothing when new, do."""
    ours = copy.deepcopy(model)
    dice = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in ours.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn(parameter.shape, generator=dice), alpha=0.3)
    swap(ours, library)
    assert fuse_layers(ours, library)
    return ours


@pytest.fixture(scope="module", params=LLAMAS)
def model(request: pytest.FixtureRequest, library: Library) -> PreTrainedModel:
    return fused(random_model(3, **LLAMAS[request.param]), library)


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


def test_slots_have_the_logits_of_the_model_as_it_was(model: PreTrainedModel) -> None:
    """The model itself computes without our cache, and so part by part."""
    runner = runner_for(model)
    for seed in range(4):
        text, tree = text_of(seed, 11), random_tree(random.Random(seed), VOCABULARY)
        tree.tokens[0] = text[-1]
        fill(runner, text)
        logits = runner.forward(tree).clone()
        runner.commit([])
        for slot in range(len(tree)):
            seen = [tree.tokens[other] for other in tree.mask[slot].nonzero()[0]]
            with torch.inference_mode():
                own = model(torch.tensor([[*text[:-1], *seen]])).logits[0, -1]
            torch.testing.assert_close(logits[slot], own, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("slots", [2, 3, 12, 13, 31, 33, 64, 100, 128])
def test_a_chain_of_any_length_has_the_bits_of_one_token_a_pass(model: PreTrainedModel, slots: int) -> None:
    runner, text = runner_for(model), text_of(1, 9 + slots)
    expected = one_by_one(runner, text)[9:]
    fill(runner, text[:10])
    assert torch.equal(runner.forward(SlotTree.chain(text[9:])), torch.stack(expected))


@given(seed=st.integers(0, 2**31), cached=st.integers(0, 40))
def test_a_tree_of_any_form_has_the_bits_of_one_token_a_pass(model: PreTrainedModel, seed: int, cached: int) -> None:
    runner, text, tree = runner_for(model), text_of(seed, cached + 1), random_tree(random.Random(seed), VOCABULARY)
    tree.tokens[0] = text[-1]
    fill(runner, text)
    logits = runner.forward(tree).clone()
    leaf = random.Random(seed).randrange(len(tree))
    path = tree.mask[leaf].nonzero()[0]
    expected = one_by_one(runner, [*text[:-1], *(tree.tokens[slot] for slot in path)])
    assert torch.equal(logits[path], torch.stack(expected)[-len(path) :])


def test_a_prompt_read_in_chunks_has_the_bits_of_one_token_a_pass(model: PreTrainedModel) -> None:
    text = text_of(5, 150)
    expected = one_by_one(runner_for(model), text)[-1]
    for chunk in (7, 64, 512):
        runner = runner_for(model, chunk=chunk)
        fill(runner, text)
        assert torch.equal(runner.forward(SlotTree(text[-1]))[0], expected)


def test_the_bundled_model_writes_what_it_wrote(library: Library) -> None:
    ours, prompt = copy.deepcopy(demo_model()), demo_prompt("What is the n-gram pool?")
    swap(ours, library)
    assert fuse_layers(ours, library)
    assert tokens_of(run(lookahead(runner_for(ours)), prompt, 60)) == generated(demo_model(), prompt, 60)


def test_hidden_states_and_skipped_layers_are_there_as_before(library: Library) -> None:
    runner = choose_runner(fused(random_model(3), library), 128)
    assert runner.capabilities.logits_only is None and runner.capabilities.tree_attention


@pytest.mark.parametrize("model_type", OTHERS)
def test_a_model_of_another_form_is_left_as_it_is(model_type: str, library: Library) -> None:
    """The first three have the parts of a Llama, and combine them in another way; the others have other parts."""
    changes: dict[str, Any] = {"residual_multiplier": 0.5} if model_type == "granite" else {}
    ours = copy.deepcopy(tiny_model(model_type, **changes)).float()
    swap(ours, library)
    assert not fuse_layers(ours, library)
    assert not any("forward" in vars(layer) for layer in getattr(ours.get_decoder(), "layers", ()))
