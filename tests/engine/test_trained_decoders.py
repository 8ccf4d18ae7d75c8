"""Decoders that need something trained: offered where it is there, and elsewhere refused with what to do."""

import json
from pathlib import Path

import pytest
import torch

from ladechat import catalog
from ladechat.engine.decoders import Decoders, RefusedSettings
from ladechat.model.trained import Maps, write_trained
from ladechat.protocol import Configure, Failed, Settings, SettingsApplied
from tests.checkpoints import load_on_cpu
from tests.engine.inside import inside
from tests.engine.wire import refused
from tests.llama2 import save_checkpoint
from tests.made_up_maps import AHEAD, CHANCES, made_up, made_up_for, save_made_up
from tests.tiny import layered_runner_for, random_model

NEEDING = {info.name: info.needs for info in catalog.DECODERS.values() if info.needs is not None}
each = pytest.mark.parametrize("name", NEEDING)


def decoders(*kinds: str, settings: Settings | None = None) -> Decoders:
    """Of a tiny model with these kinds."""
    runner = layered_runner_for(random_model(0))
    by_kind = {kind: trained for kind, trained in made_up_for(runner).items() if kind in kinds}
    missing = {kind: f"There is no {kind} here." for kind in NEEDING.values() if kind not in kinds}
    return Decoders(runner, torch.device("cpu"), settings or Settings(), maps=Maps(by_kind, missing))


@each
def test_a_decoder_is_offered_where_what_it_needs_is_there(name: str) -> None:
    kind = NEEDING[name]
    assert [info.name for info in decoders(kind).offered() if info.needs] == [name]
    assert [info.name for info in decoders().offered()] == [one for one in catalog.DECODERS if one not in NEEDING]
    with_it = decoders(kind, settings=Settings(decoder=name, parameters={"nodes": 5}))
    assert with_it.chosen().drafters[0].nodes == 5  # type: ignore[attr-defined]  # both have it


@each
def test_elsewhere_it_is_refused_with_the_reason_and_nothing_has_changed(name: str) -> None:
    without = decoders(settings=Settings(decoder="suffix", parameters={"nodes": 3}))
    before = without.settings
    label = catalog.DECODERS[name].label
    with pytest.raises(RefusedSettings, match=f"{label} cannot be used with this model: There is no {NEEDING[name]}"):
        without.apply(Settings(decoder=name, parameters={"nodes": 9}))
    assert without.settings is before
    without.apply(Settings(decoder="recycling"))
    assert without.settings.parameters == {"nodes": 3}
    with pytest.raises(RefusedSettings):
        decoders(settings=Settings(decoder=name))


def test_an_engine_refuses_one_in_a_sentence_and_goes_on(tmp_path: Path) -> None:
    with inside(save_checkpoint(tmp_path), Settings(decoder="suffix")) as wire:
        assert not {info.name for info in wire.ready.decoders} & NEEDING.keys()
        wire.send(Configure(decoder="medusa"))
        failed = wire.until(Failed)
        assert (failed.code, failed.fatal) == ("bad_command", False)
        assert "Medusa cannot be used with this model: Nothing was trained" in failed.message
        assert "ladechat train medusa --model" in failed.message
        steps, _ = wire.ask("What is it?", max_new_tokens=4)
        assert steps
        wire.send(Configure(decoder="jacobi"))
        assert wire.until(SettingsApplied).settings.decoder == "jacobi"


def test_an_engine_says_what_was_trained_for_its_model_and_how_often_that_is_right(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path)
    save_made_up(folder)
    with inside(folder) as wire:
        found = {part.kind: part for part in wire.ready.trained}
    assert found.keys() == set(NEEDING.values())
    width = json.loads((folder / "config.json").read_text(encoding="utf-8"))["hidden_size"]
    assert {part.width for part in found.values()} == {width}
    assert len(found["transfer"].layers) == AHEAD and found["medusa"].layers == []
    assert found["transfer"].right == [round(CHANCES[0][0], 4)], "of a file that only says how often paths are right"


@pytest.mark.full
def test_an_engine_that_is_started_with_one_ends_with_the_reason(tmp_path: Path) -> None:
    failed = refused("--model", str(save_checkpoint(tmp_path)), "--decoder", "hidden_transfer")
    assert failed.code == "load_failed"
    assert failed.message.startswith("Hidden transfer cannot be used with this model: Nothing was trained")
    assert failed.message.endswith(".") and "--decoder" in failed.hint


@pytest.mark.full
def test_a_file_of_another_model_that_is_named_ends_the_engine_with_the_reason(tmp_path: Path) -> None:
    write_trained(tmp_path / "other", made_up("medusa", 3, 64))
    failed = refused("--model", "demo", "--maps", str(tmp_path / "other"))
    assert failed.code == "load_failed" and "was trained for another model, made up" in failed.message


def test_an_engine_drafts_with_what_lies_beside_its_model(tmp_path: Path) -> None:
    save_made_up(save_checkpoint(tmp_path))
    loaded = load_on_cpu(tmp_path)
    found = Decoders(loaded.runner, torch.device("cpu"), Settings(), maps=loaded.maps)
    for name in NEEDING:
        found.apply(Settings(decoder=name))
        decoder, sampler = found.chosen(), found.begin([5, 6, 7], seed=1)
        assert decoder.drafters and sampler.text == [5, 6, 7]
    assert {info.name for info in found.offered()} == {*catalog.DECODERS}
