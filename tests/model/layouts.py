"""Layouts of passes with windows and trees, and what each of their slots must say."""

import random

import torch
from transformers import PreTrainedModel

from ladechat.decoder.candidate_tree import CandidateTree
from ladechat.decoder.jacobi import JacobiWindow
from ladechat.decoder.verify_mask import StepLayout, column_guess, lay_out
from ladechat.model.eager import EagerRunner

TOLERANCE = 1e-4


def random_layout(dice: random.Random, vocabulary: int) -> StepLayout:
    def token(_: int = 0) -> int:
        return dice.randrange(vocabulary)

    tree, window = CandidateTree(), None
    if dice.random() < 0.8:
        window = JacobiWindow(token(), dice.randint(1, 8), dice.randint(2, 6), token)
        tree.add(column_guess(window), "window")
    for _ in range(dice.randint(0, 5)):
        tree.add([token() % 3 for _ in range(dice.randint(1, 4))], "prompt")
    return lay_out(window.rows[0][0] if window else token(), window, tree)


def check_slots_against_plain_passes(model: PreTrainedModel, runner: EagerRunner, layout: StepLayout) -> None:
    """Each slot against the model itself, run without a cache over the cached tokens and those the slot sees."""
    cached = list(runner.tokens)
    logits = runner.forward(layout)
    runner.keep([])
    for slot in range(len(layout)):
        seen = sorted(layout.mask[slot].nonzero()[0], key=lambda other: layout.positions[other])
        assert seen[-1] == slot
        text = cached + [layout.tokens[other] for other in seen]
        with torch.inference_mode():
            expected = model(torch.tensor([text])).logits[0, -1]
        assert (logits[slot] - expected).abs().max() <= TOLERANCE * max(1.0, float(expected.abs().max()))
