"""Small trainings of tiny random models."""

import random
from typing import Any

import torch
from transformers import PreTrainedModel

from ladechat.model.loading.self_check import tree_runner
from ladechat.train.chunks import Chunks, Text
from ladechat.train.features import Base
from ladechat.train.options import Recipe
from ladechat.train.trainer import Training
from tests.tiny import VOCABULARY, random_model


def base_of(model: PreTrainedModel) -> Base:
    runner = tree_runner(model, 512)
    assert runner.loop is not None
    eager = model.config._attn_implementation == "eager"
    model.requires_grad_(False)
    return Base(runner.loop, runner.windows, eager, model.dtype, model.device)


def recipe(**changes: Any) -> Recipe:
    usual: dict[str, Any] = {
        "method": "transfer",
        "base": "b" * 32,
        "layers": (1, 1, 2),
        "sight": True,
        "loss": "ce",
        "steps": 8,
        "batch": 2,
        "anchors": 12,
        "length": 24,
        "rate": 3e-3,
        "seed": 5,
        "text": "t" * 16,
    }
    return Recipe(**{**usual, **changes})


def chunks(of: Recipe, count: int = 12) -> Chunks:
    """Of random texts."""
    dice = random.Random(3)
    texts = [Text([dice.randrange(VOCABULARY) for _ in range(44)], 4) for _ in range(count)]
    return Chunks(texts, of.length, of.ahead, of.anchors)


def training(of: Recipe | None = None, model: PreTrainedModel | None = None) -> Training:
    of, model = of or recipe(), model or random_model(0)
    with torch.random.fork_rng([]):
        return Training(base_of(model), of, chunks(of))
