"""Layer skipping: offered where layers can be run one by one, and elsewhere refused with the reason."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from ladechat import catalog, layer_search
from ladechat.decoder.drafters.layer_skip import LayerSkipDrafter, default_skipped
from ladechat.decoder.runner import Runner
from ladechat.engine import decoders as decoders_module
from ladechat.engine.decoders import Decoders, RefusedSettings
from ladechat.engine.loading_events import STAGES
from ladechat.engine.preparing import SEARCH_STAGE, search_layers
from ladechat.engine.service import Service
from ladechat.layer_search import read_skipped, write_skipped
from ladechat.model.checkpoint.files import LoadError
from ladechat.model.runners.tree import TreeRunner
from ladechat.protocol import Event, Failed, Loading, Ready, Settings, Stop
from tests.checkpoints import service_of
from tests.engine.asking import of_kind
from tests.engine.wire import Wire, started
from tests.llama2 import save_checkpoint
from tests.tiny import layered_runner_for, random_model, runner_for
from tests.waiting import patience

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


# --- which layers ----------------------------------------------------------------------------------------------------


def skipped_by(found: Decoders) -> frozenset[int]:
    found.apply(Settings(decoder=NAME))
    (drafter,) = found.chosen().drafters
    assert isinstance(drafter, LayerSkipDrafter)
    return drafter.skipped


def test_the_kept_set_is_skipped_where_one_is_kept(tmp_path: Path) -> None:
    runner, file = layered_runner_for(random_model(0)), tmp_path / "skipped.json"

    def fresh() -> Decoders:
        return Decoders(runner, torch.device("cpu"), Settings(), skipped=file)

    assert skipped_by(fresh()) == default_skipped(runner.layers)
    write_skipped(file, frozenset({1}))
    assert skipped_by(fresh()) == {1}


def test_what_a_search_finds_is_skipped_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_search, "measured_rate", lambda *_: lambda skipped: 2.0 if skipped == {0, 1, 2} else 1.0)
    runner = layered_runner_for(random_model(0, num_hidden_layers=4))
    write_skipped(tmp_path / "kept.json", frozenset({0, 1}))
    found = Decoders(runner, torch.device("cpu"), Settings(), skipped=tmp_path / "kept.json")
    found.search_layers([5, 6, 7], lambda: False)
    assert skipped_by(found) == frozenset({0, 1, 2}) == read_skipped(tmp_path / "kept.json", 4)


@pytest.mark.full
def test_an_engine_searches_while_it_loads_and_says_how_far_it_is(tmp_path: Path) -> None:
    model = str(save_checkpoint(tmp_path))
    wire, _ = started("--model", model, "--decoder", NAME, "--layer-search", "1")
    loading = of_kind(wire.seen, Loading)
    assert {event.stages for event in loading} == {STAGES + 1}
    search = [event for event in loading if event.doing == SEARCH_STAGE]
    assert [event.stoppable for event in loading] == [event in search for event in loading]
    parts = [event.fraction for event in search if event.fraction is not None]
    assert {event.stage for event in search} == {STAGES + 1} and len(parts) > 2
    assert parts == sorted(parts)
    steps, _ = wire.ask("What is it?", max_new_tokens=12)
    plain, _ = started("--model", model, "--decoder", "autoregressive")
    expected, _ = plain.ask("What is it?", max_new_tokens=12)
    assert [one for step in steps for one in step.token_ids] == [one for step in expected for one in step.token_ids]
    for one in (wire, plain):
        one.close()


@pytest.mark.full
@pytest.mark.parametrize("end", ["stop", "close"])
def test_a_stop_ends_a_search_and_a_close_the_engine(end: str) -> None:
    wire = Wire("--model", "demo", "--layer-search", "3600")
    while wire.until(Loading).doing != SEARCH_STAGE:
        pass
    if end == "close":
        assert wire.end() == 0
        assert not any(isinstance(event, Ready) for event in wire.rest())
        return
    wire.send(Stop())
    ready = wire.until(Ready)
    assert ready.t - of_kind(wire.seen, Loading)[-1].t < patience()
    steps, _ = wire.ask("What is it?", max_new_tokens=4)
    assert steps
    wire.close()
    wire.close()


class Report:
    """What a search says of itself."""

    def __init__(self) -> None:
        self.doing: list[str] = []
        self.parts: list[float] = []
        self.fraction_done = self.parts.append

    def begin(self, doing: str, *, stoppable: bool) -> None:
        assert stoppable
        self.doing.append(doing)


def search(service: Service, stop_wanted: Callable[[], bool], emitted: list[Event]) -> Report:
    report = Report()
    search_layers(service, 3600, cast(Any, report), stop_wanted, lambda *events: emitted.extend(events))
    return report


def test_a_stop_is_heard_after_the_pass_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, asked = service_of(save_checkpoint(tmp_path), Settings()), count()
    results: list[layer_search.Found] = []

    def noted(*given: Any) -> layer_search.Found:
        results.append(layer_search.improved(*given))
        return results[0]

    monkeypatch.setattr(decoders_module, "improved", noted)
    report = search(service, lambda: next(asked) >= 3, [])
    assert report.doing == [SEARCH_STAGE]
    assert next(asked) < 9
    assert (results[0].tried, results[0].rate) == (1, 0.0)
    assert skipped_by(service.decoders) == default_skipped(3)


def test_the_question_is_put_in_the_models_chat_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, prompts = service_of(save_checkpoint(tmp_path), Settings()), list[list[int]]()
    monkeypatch.setattr(service.decoders, "search_layers", lambda prompt, over: prompts.append(prompt))
    search(service, lambda: False, [])
    text = service.loaded.tokenizer.decode(prompts[0])
    assert "[INST]" in text and layer_search.JUDGED_QUESTION in text


def test_a_search_that_fails_is_told_of_and_the_engine_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(prompt: object, over: object) -> None:
        raise FloatingPointError("not finite")

    service, emitted = service_of(save_checkpoint(tmp_path), Settings()), list[Event]()
    monkeypatch.setattr(service.decoders, "search_layers", fails)
    search(service, lambda: False, emitted)
    [failed] = emitted
    assert isinstance(failed, Failed) and not failed.fatal


def test_a_search_that_the_model_does_not_allow_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = service_of(save_checkpoint(tmp_path), Settings())
    monkeypatch.setattr(TreeRunner, "layers", 1)
    with pytest.raises(LoadError, match="No layer of tiny can be skipped: At least 2 layers are needed, and") as caught:
        search(service, lambda: False, [])
    assert "--layer-search" in caught.value.hint
