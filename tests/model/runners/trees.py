"""Trees of slots with windows and guesses, and what each of their slots must say."""

import random

import torch
from transformers import PreTrainedModel

from ladechat.decoder.hidden import TransferMaps
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.tree import TreeRunner

TOLERANCE = 1e-4


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((one - other).abs().max() <= TOLERANCE * max(1.0, float(other.abs().max())))


def random_maps(dice: random.Random, depth: int = 3, width: int = 32) -> TransferMaps:
    """One to four maps that enter anywhere, several at one layer too; they are no good, and that must not matter."""
    layers = sorted(dice.randrange(depth) for _ in range(dice.randint(1, 4)))
    torch.manual_seed(dice.randrange(1 << 30))
    return TransferMaps(tuple(layers), torch.randn(len(layers), width, width) * 0.2)


def random_tree(dice: random.Random, vocabulary: int) -> SlotTree:
    """Branches of any shape, of one slot up to some dozens."""
    tree = SlotTree(dice.randrange(vocabulary))
    for _ in range(dice.choice([0, dice.randint(1, 12), dice.randint(1, 60)])):
        parent = len(tree) - 1 if dice.random() < 0.6 else dice.randrange(len(tree))
        tree.add(parent, dice.randrange(vocabulary))
    return tree


def check_slots_against_plain_passes(model: PreTrainedModel, runner: TreeRunner, tree: SlotTree) -> None:
    """Each slot against the model itself, run without a cache over the cached tokens and those the slot sees."""
    cached = list(runner.tokens)
    logits = runner.forward(tree)
    runner.commit([])
    for slot in range(len(tree)):
        seen = tree.mask[slot].nonzero()[0]
        assert seen[-1] == slot
        text = cached + [tree.tokens[other] for other in seen]
        with torch.inference_mode():
            expected = model(torch.tensor([text])).logits[0, -1]
        assert close(logits[slot], expected)
