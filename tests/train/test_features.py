"""What is trained is what will be used: pseudo rows of a training are those of a pass of the runner."""

import random

import pytest
import torch

from ladechat.decoder.drafters.medusa import MedusaHeads
from ladechat.decoder.hidden import TransferMaps, Want
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.loading.self_check import tree_runner
from ladechat.model.runners.logits import fill
from ladechat.model.runners.tree import TreeRunner
from ladechat.train.chunks import Batch
from ladechat.train.features import pseudo_pass, read
from ladechat.train.students import MedusaStudent, TransferStudent
from tests.model.runners.trees import close, random_maps
from tests.tiny import VOCABULARY, random_model
from tests.train.tiny import base_of, recipe

WIDTH = 32


def random_batch(dice: random.Random, ahead: int) -> tuple[Batch, list[list[int]]]:
    """Chunks of different lengths, and the tokens of each."""
    texts = [[dice.randrange(VOCABULARY) for _ in range(dice.randint(12, 30))] for _ in range(3)]
    longest = max(map(len, texts))
    tokens = torch.tensor([text + [0] * (longest - len(text)) for text in texts])
    anchors = torch.tensor([sorted(dice.sample(range(len(text) - ahead - 1), 4)) for text in texts])
    return Batch(tokens, anchors), texts


def passes(runner: TreeRunner, text: list[int], anchor: int, maps: TransferMaps) -> tuple[torch.Tensor, torch.Tensor]:
    """(k, d) the pseudo rows and (k, V) their logits, as the runner has them when the anchor's token is the last."""
    fill(runner, text[: anchor + 1])
    _, hidden = runner.forward_hidden(SlotTree(text[anchor]), Want(maps, [0]))
    assert hidden.pseudo is not None
    return hidden.pseudo[0], hidden.read(hidden.pseudo[0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("model_type", ["llama", "qwen3", "gemma2", "gemma3_text", "gpt_oss"])
def test_pseudo_rows_of_a_training_are_those_of_a_pass(model_type: str, seed: int) -> None:
    dice = random.Random(seed)
    changes = {"sliding_window": 6} if model_type.startswith("gemma") else {}
    model = random_model(seed % 3, model_type, **changes)
    base, maps, runner = base_of(model), random_maps(dice), tree_runner(model, 128)
    ahead = len(maps.layers)
    batch, texts = random_batch(dice, ahead)
    done = pseudo_pass(base, read(base, batch.tokens, maps.layers), batch, maps)
    for row, text in enumerate(texts):
        for place, anchor in enumerate(batch.anchors[row].tolist()):
            expected, logits = passes(runner, text, anchor, maps)
            states = done.final[:, row * batch.anchors.shape[1] + place]
            assert close(states, expected)
            assert close(base.loop.read(states), logits)


def test_without_sight_a_row_is_what_it_is_alone() -> None:
    dice = random.Random(1)
    model = random_model(0)
    base, batch_and_texts = base_of(model), random_batch(dice, 2)
    batch = batch_and_texts[0]
    maps = TransferMaps((1, 1), torch.randn(2, WIDTH, WIDTH) * 0.2)
    blind = pseudo_pass(base, read(base, batch.tokens, maps.layers), batch, maps, sight=False).final
    seeing = pseudo_pass(base, read(base, batch.tokens, maps.layers), batch, maps).final
    assert close(blind[0], seeing[0]) and not close(blind[1], seeing[1])


def test_the_text_is_read_as_the_model_reads_it() -> None:
    model = random_model(1)
    base, (batch, texts) = base_of(model), random_batch(random.Random(2), 3)
    final = base.loop.read(read(base, batch.tokens, ()).final)
    for row, text in enumerate(texts):
        with torch.no_grad():
            expected = model(torch.tensor([text])).logits[0]
        assert close(final[row, : len(text)], expected)


def test_targets_are_the_tokens_that_the_guesses_are_about() -> None:
    """Row i of a slot at position n reads the token at n + i + 2; the real state that says it stands at n + i + 1."""
    model = random_model(0)
    base, (batch, texts) = base_of(model), random_batch(random.Random(4), 3)
    some = next(TransferStudent(base, recipe()).guesses(batch))
    context = read(base, batch.tokens, ())
    for row, text in enumerate(texts):
        for place, anchor in enumerate(batch.anchors[row].tolist()):
            column = row * batch.anchors.shape[1] + place
            assert some.targets[:, column].tolist() == text[anchor + 2 : anchor + 5]
            assert torch.equal(some.real[:, column], context.final[row, anchor + 1 : anchor + 4])


def test_medusa_learns_from_the_state_that_its_drafter_reads() -> None:
    model = random_model(0)
    base, (batch, texts) = base_of(model), random_batch(random.Random(5), 3)
    student = MedusaStudent(base, recipe(method="medusa"))
    with torch.no_grad():
        student.tensors["weights"].normal_()
        guesses = torch.cat([some.states for some in student.guesses(batch)], 1)
    maps = student.maps()
    assert isinstance(maps, MedusaHeads)
    runner = tree_runner(model, 64)
    text, anchor = texts[0], int(batch.anchors[0, 0])
    fill(runner, text[: anchor + 1])
    _, hidden = runner.forward_hidden(SlotTree(text[anchor]), Want())
    with torch.no_grad():
        assert close(guesses[:, 0], maps(hidden.states[0]))


def test_untrained_guesses_are_the_models_own_reading_of_the_present() -> None:
    """Medusa's heads begin as the output layer, the maps as the identity."""
    model = random_model(0)
    base, (batch, _) = base_of(model), random_batch(random.Random(6), 3)
    final = read(base, batch.tokens, ()).final
    medusa = next(MedusaStudent(base, recipe(method="medusa")).guesses(batch)).states
    assert torch.equal(medusa[0], batch.at(final, [0])[0])
    assert torch.equal(TransferStudent(base, recipe()).tensors["weights"][1], torch.eye(WIDTH))
