"""How much of a step is not its pass: what is counted, and that the page says what was measured."""

import json
from pathlib import Path

import pytest

from benchmarks.host import DECODERS, Found, answer_to, figures, page_table
from ladechat.engine.turn import Service
from ladechat.model.loading import LoadedModel
from ladechat.protocol import Settings

ROOT = Path(__file__).parents[2]


def test_every_decoder_is_timed_as_an_engine_runs_it(loaded: LoadedModel) -> None:
    service = Service.of(loaded, Settings())
    for settings in DECODERS.values():
        service.decoders.apply(settings)
        taken = Found()
        answer_to("the pool keeps the n-grams of the pool", service, taken)
        assert taken.behind_ms > 0
        found = figures(taken)
        assert found["steps"] == len(taken.steps) > 1
        assert 0 < found["besides_ms"] < found["step_ms"] and 0 < found["share"] < 1
        if not settings.auto:
            assert (found["slots"] > 10) == (settings.decoder == "lookahead")


def test_passes_that_are_only_timed_are_told_apart(loaded: LoadedModel) -> None:
    taken = Found()
    answer_to("the pool keeps the n-grams of the pool", Service.of(loaded, DECODERS["plain"]), taken)
    without = figures(taken)
    taken.timed_ms = 0.5 * without["besides_ms"] * without["steps"]
    found = figures(taken)
    assert found["step_ms"] == without["step_ms"]
    assert found["besides_ms"] == pytest.approx(without["besides_ms"] / 2, abs=0.002)
    assert found["timed_ms"] == pytest.approx(found["besides_ms"], abs=0.002)


def test_the_page_has_the_figures_that_were_measured() -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / "host_demo.json").read_text(encoding="utf-8"))
    assert page_table(report) in (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
