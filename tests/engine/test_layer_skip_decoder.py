"""Layer skipping: offered where layers can be run one by one, and elsewhere refused with the reason."""

import pytest
import torch

from ladechat import catalog
from ladechat.decoder.runner import Runner
from ladechat.engine.decoders import Decoders, RefusedSettings
from ladechat.protocol import Settings
from tests.tiny import layered_runner_for, random_model, runner_for

NAME = "layer_skip"


def decoders(runner: Runner, settings: Settings | None = None) -> Decoders:
    return Decoders(runner, torch.device("cpu"), settings or Settings())


def names(found: Decoders) -> set[str]:
    return {info.name for info in found.offered()}


def test_it_is_offered_where_layers_can_be_run_one_by_one() -> None:
    found = decoders(layered_runner_for(random_model(0)), Settings(decoder=NAME, parameters={"nodes": 5}))
    assert NAME in names(found)
    assert found.chosen().drafters[0].nodes == 5  # type: ignore[attr-defined]  # it has


@pytest.mark.parametrize(
    ("runner", "reason"),
    [
        (runner_for(random_model(0)), "Its passes give logits alone"),
        (layered_runner_for(random_model(0, num_hidden_layers=1)), "At least 2 layers are needed, and it has 1"),
    ],
    ids=["layers that nobody checked", "one layer"],
)
def test_elsewhere_it_is_left_out_and_refused_and_nothing_has_changed(runner: Runner, reason: str) -> None:
    found = decoders(runner, Settings(decoder="suffix", parameters={"nodes": 3}))
    before = found.settings
    assert names(found) == {name for name, info in catalog.DECODERS.items() if not info.needs and name != NAME}
    with pytest.raises(RefusedSettings, match=f"layer skipping cannot be used with this model: {reason}$"):
        found.apply(Settings(decoder=NAME, parameters={"nodes": 9}))
    assert found.settings is before
