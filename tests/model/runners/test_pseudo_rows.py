"""Passes with pseudo rows: slots are what they are without them, and each row is what a slow, plain way says."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from ladechat.decoder.hidden import TransferMaps, Want
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.loading.self_check import tree_runner
from ladechat.model.runners.graphs import unrecorded
from ladechat.model.runners.logits import fill
from ladechat.model.runners.tree import TreeRunner
from tests.model.runners.trees import close, random_maps, random_tree
from tests.tiny import VOCABULARY, random_model

WIDTH, DEPTH = 32, 3
TYPES = ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "olmo2", "granite", "cohere2"]
TYPES += ["starcoder2", "stablelm", "smollm3", "glm4", "mixtral", "helium", "nemotron", "exaone4", "gpt_oss"]


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


def filled(model: PreTrainedModel, dice: random.Random) -> TreeRunner:
    """A runner with up to 40 cached tokens."""
    runner = tree_runner(model, 128)
    fill(runner, [dice.randrange(VOCABULARY) for _ in range(dice.randint(1, 40))])
    return runner


def pseudo_states(model: Any, text: Sequence[int], maps: TransferMaps) -> list[torch.Tensor]:
    """The pseudo rows (j, d) of the text's last token, normed, as they go into each layer and, last, (k, d) as they
    leave the last one; those from before the first map are empty. The text and its rows are one sequence, each row sees
    what stands before it, and nothing is cached: so there is no mask to be wrong about but the causal one.
    """
    decoder, hidden = model.model, model.model.embed_tokens(torch.tensor([text]))
    states: list[torch.Tensor] = []
    for layer, module in enumerate(decoder.layers):
        for weight, enters in zip(maps.weights, maps.layers, strict=True):
            if enters == layer:
                hidden = torch.cat([hidden, (weight @ hidden[0, len(text) - 1])[None, None]], 1)
        states.append(decoder.norm(hidden)[0, len(text) :])
        count = hidden.shape[1]
        positions = torch.arange(count)[None]
        mask = torch.full((count, count), -1e30).triu(1)[None, None]
        hidden = module(
            hidden,
            attention_mask=mask,
            position_ids=positions,
            position_embeddings=decoder.rotary_emb(hidden, positions),
        )
    return [*states, decoder.norm(hidden)[0, len(text) :]]


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(8, 40))])
def test_a_pseudo_row_is_what_it_would_be_at_the_end_of_its_slots_text(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(seed % 5, num_key_value_heads=dice.choice([1, 2, 4]))
    runner, maps, tree = filled(model, dice), random_maps(dice), random_tree(dice, VOCABULARY)
    carriers = sorted(dice.sample(range(len(tree)), dice.randint(1, len(tree))))
    cached = list(runner.tokens)
    _, hidden = runner.forward_hidden(tree, Want(maps, carriers))
    assert hidden.pseudo is not None
    assert hidden.pseudo.shape == (len(carriers), len(maps.layers), WIDTH)
    for carrier, rows in zip(carriers, hidden.pseudo, strict=True):
        seen = tree.mask[carrier].nonzero()[0]
        *_, expected = pseudo_states(model, [*cached, *(tree.tokens[slot] for slot in seen)], maps)
        assert close(rows, expected)
        assert close(hidden.read(rows), model.lm_head(expected))


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(4, 20))])
def test_rows_on_their_way_up_are_handed_out_to_who_wants_them(seed: int) -> None:
    dice = random.Random(seed)
    model = random_model(seed % 5)
    runner, maps, tree = filled(model, dice), random_maps(dice), random_tree(dice, VOCABULARY)
    carriers = sorted(dice.sample(range(len(tree)), dice.randint(1, len(tree))))
    cached = list(runner.tokens)
    plain, closed = runner.forward_hidden(tree, Want(maps, carriers))
    assert not closed.below
    logits, hidden = runner.forward_hidden(tree, Want(maps, carriers, lens=True))
    assert torch.equal(logits, plain)
    assert len(hidden.below) == DEPTH - maps.layers[0]
    for place, carrier in enumerate(carriers):
        seen = tree.mask[carrier].nonzero()[0]
        text = [*cached, *(tree.tokens[slot] for slot in seen)]
        for states, expected in zip(hidden.below, pseudo_states(model, text, maps)[maps.layers[0] :], strict=False):
            assert len(expected) and close(hidden.norm(states[:, place]), expected)


@pytest.mark.parametrize("model_type", TYPES)
def test_slots_do_not_notice_pseudo_rows(model_type: str) -> None:
    """Their logits are those of a pass without, and so is what is committed, in each architecture that has layers."""
    model = random_model(0, model_type)
    for seed in range(2):
        dice = random.Random(seed)
        runner, tree = filled(model, dice), random_tree(dice, VOCABULARY)
        maps = random_maps(dice)
        plain = runner.forward(tree).clone()
        logits, hidden = runner.forward_hidden(tree, Want(maps, range(len(tree))))
        assert close(logits, plain)
        assert close(hidden.read(hidden.states), plain)
        path, slot = [0], 0
        while below := [child for child in range(len(tree)) if tree.parents[child] == slot]:
            slot = dice.choice(below)
            path.append(slot)
        runner.commit(path)
        text, last = list(runner.tokens), SlotTree(dice.randrange(VOCABULARY))
        expected = model(torch.tensor([[*text, *last.tokens]])).logits[0, -1]
        assert close(runner.forward(last)[0], expected)


@pytest.mark.parametrize("overflow", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("layer", [-1, 0, 1])
def test_slots_do_not_notice_rows_that_overflow(layer: int, overflow: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is masked counts 0 times, and 0 · NaN is NaN. They overflow where they enter (-1), or in a layer."""
    model = random_model(0)
    runner = tree_runner(model, 128)
    runner.use_graphs(unrecorded)
    fill(runner, [5, 6, 7])
    assert runner.graphs is not None and runner.loop is not None
    runner.graphs.record_all()
    maps = TransferMaps((0, 1), torch.full((2, WIDTH, WIDTH), overflow if layer < 0 else 1.0))
    through = runner.loop.through

    def overflowing(at: int, hidden: Any, mask: Any, positions: Any, angles: Any, cache: Any) -> torch.Tensor:
        after = through(at, hidden, mask, positions, angles, cache)
        after[0, 1:] *= overflow if at == layer else 1.0
        return after

    with monkeypatch.context() as patched:
        patched.setattr(runner.loop, "through", overflowing)
        logits, _ = runner.forward_hidden(SlotTree(8), Want(maps, [0]))
    assert close(logits[0], model(torch.tensor([[*runner.tokens, 8]])).logits[0, -1])
    runner.commit([0])
    expected = model(torch.tensor([[*runner.tokens, 9]])).logits[0, -1]
    assert close(runner.forward(SlotTree(9))[0], expected), "a recorded pass reads the places behind its slots"
    assert runner.graphs.history


def test_maps_of_another_model_are_refused() -> None:
    runner = tree_runner(random_model(0), 64)
    for layers, width in (((DEPTH,), WIDTH), ((1,), WIDTH + 1)):
        maps = TransferMaps(layers, torch.zeros(1, width, width))
        with pytest.raises(ValueError, match="another model"):
            runner.forward_hidden(SlotTree(5), Want(maps, [0]))
    with pytest.raises(ValueError, match="do not fall"):
        TransferMaps((2, 1), torch.zeros(2, WIDTH, WIDTH))
    with pytest.raises(ValueError, match="1 layers"):
        TransferMaps((2,), torch.zeros(2, WIDTH, WIDTH))


@pytest.mark.parametrize("model_type", ["gpt2", "opt", "phi"])
def test_a_model_without_such_layers_says_so(model_type: str) -> None:
    runner = tree_runner(random_model(0, model_type), 64)
    assert runner.capabilities.logits_only is not None
    assert model_type in runner.capabilities.logits_only
    with pytest.raises(ValueError, match="no part called"):
        runner.forward_hidden(SlotTree(5), Want())
