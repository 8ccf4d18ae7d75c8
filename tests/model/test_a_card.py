"""Every tensor is on the card that computes, from loading to commit: seen without one."""

import shutil
from pathlib import Path

import pytest

from ladechat import registry
from ladechat.decoder.hidden import TransferMaps
from ladechat.decoder.sampler import GREEDY, Sampler, Sampling
from ladechat.decoder.step import Limits
from ladechat.model.loaded import LoadedModel
from ladechat.model.runners.tree import TreeRunner
from tests.made_up_costs import drawn, shared
from tests.made_up_maps import save_made_up
from tests.model.a_card import TOKENS, as_if_on_a_card, loaded_on_a_card
from tests.tiny import small_demo, tokens_of

PROMPT = [*TOKENS] * 5
LIMIT = 8
"""Tokens of an answer: an operation takes a thousand times as long as on a card."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with maps and heads beside it."""
    folder = tmp_path_factory.mktemp("checkpoint") / "model"
    shutil.copytree(small_demo(), folder)
    save_made_up(folder)
    return folder


def written(loaded: LoadedModel, name: str, sampling: Sampling = GREEDY) -> list[int]:
    """Return what a decoder writes of made-up logits."""
    costs = shared(drawn(3), window=True, trained=loaded.maps.by_kind)
    decoder = registry.make(name, loaded.runner, costs)
    sampler = Sampler(PROMPT, sampling)
    return tokens_of(list(decoder.run(PROMPT, Limits(LIMIT, frozenset()), sampler)))


@pytest.mark.parametrize(
    ("dtype", "sampling"),
    [
        ("bfloat16", GREEDY),
        pytest.param("float32", Sampling(sample=True), marks=pytest.mark.full),
        pytest.param("float16", GREEDY, marks=pytest.mark.full),
    ],
)
def test_every_decoder_computes_on_the_card(checkpoint: Path, dtype: str, sampling: Sampling) -> None:
    with as_if_on_a_card() as read:
        loaded = loaded_on_a_card(checkpoint, dtype)
        assert loaded.runner.capabilities.logits_only is None and len(loaded.maps.by_kind) == 2
        for name in registry.DECODERS:
            assert len(written(loaded, name, sampling)) == LIMIT
    assert "cuda" in read


def test_a_tensor_that_was_left_on_the_cpu_is_found(checkpoint: Path) -> None:
    with as_if_on_a_card():
        loaded = loaded_on_a_card(checkpoint)
        maps = loaded.maps.by_kind["transfer"].maps
        assert isinstance(maps, TransferMaps) and isinstance(loaded.runner, TreeRunner)
        object.__setattr__(maps, "weights", maps.weights.cpu())
        with pytest.raises(RuntimeError, match=r"two (different )?devices"):
            written(loaded, "hidden_transfer")
