"""The maps and heads that come with the bundled model: they belong to it, are small, and guess well."""

import pytest
import torch

from ladechat import catalog, registry
from ladechat.decoder.step import Limits
from ladechat.model.trained import KINDS, load_maps
from ladechat.registry import Shared
from ladechat.tuning.costs import PassCosts
from tests.tiny import DEMO, demo_model, demo_prompt, layered_runner_for, plain, tokens_of

QUESTIONS = ("What is the n-gram pool?", "How do I stop an answer?")
LARGEST = 1_500_000
"""Bytes of what is trained, in the wheel."""


def test_they_are_small() -> None:
    assert 0 < sum((DEMO / f"{kind}.safetensors").stat().st_size for kind in KINDS) <= LARGEST


def test_they_say_how_often_their_best_guesses_are_right_and_hidden_transfer_is_it_more_often() -> None:
    by_kind = load_maps(layered_runner_for(demo_model()), DEMO, "demo", torch.float32).by_kind
    transfer, medusa = by_kind["transfer"].right, by_kind["medusa"].right
    assert len(transfer) == len(medusa) == 3
    assert all(one > other for one, other in zip(transfer, medusa, strict=True))
    for trained in by_kind.values():
        assert round(trained.chances[0][0], 2) == round(trained.right[0], 2), "of one measurement"


@pytest.mark.parametrize("name", [info.name for info in catalog.DECODERS.values() if info.needs])
def test_their_drafts_save_passes_and_change_no_token(name: str) -> None:
    runner = layered_runner_for(demo_model())
    maps = load_maps(runner, DEMO, "demo", torch.float32)
    assert not maps.missing
    passes = tokens = 0
    for question in QUESTIONS:
        prompt = demo_prompt(question)
        expected = plain(demo_model(), prompt, 48)
        decoder = registry.make(name, runner, Shared(PassCosts(runner), trained=maps.by_kind))
        steps = list(decoder.run(prompt, Limits(48)))
        assert tokens_of(steps) == expected
        passes, tokens = passes + len(steps), tokens + len(expected)
    assert tokens >= 1.2 * passes
