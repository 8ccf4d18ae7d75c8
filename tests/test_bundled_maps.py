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
