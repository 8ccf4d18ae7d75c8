"""What plain passes lose behind something else: what is said of times that were made up."""

import json
from pathlib import Path

import pytest

from benchmarks.away import BEHIND, SETTLED, figures, measure, page_table
from tests.tiny import random_model, runner_for

ROOT = Path(__file__).parents[2]


def test_what_passes_are_longer_is_set_against_what_was_done() -> None:
    passes = [0.003, 0.002, *[0.001] * (BEHIND - 2)]
    found = figures([0.004, 0.004, 9.0], 3 * [passes], instead=False)
    assert found["ms"] == 4 and found["passes_behind_ms"] == [3, 2, *[1] * (BEHIND - 2)]
    assert found["lost_per_second"] == pytest.approx(0.003 / 0.004)
    assert figures([0.004], [passes], instead=True)["lost_per_second"] == pytest.approx(1)


def test_behind_nothing_nothing_is_said_to_be_lost() -> None:
    assert figures([0.0], [[0.001] * BEHIND], instead=False)["lost_per_second"] is None
    assert BEHIND > SETTLED


def test_all_things_are_measured_and_the_text_stays() -> None:
    runner = runner_for(random_model(0))
    for _ in runner.prefill([3, 4, 5, 6]):
        pass
    found = measure(runner, 1)
    assert {len(one["passes_behind_ms"]) for one in found.values()} == {BEHIND} and len(found) > 3
    assert list(runner.tokens) == [3, 4, 5]


def test_the_page_has_the_table_that_was_measured() -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / "away_demo.json").read_text(encoding="utf-8"))
    assert page_table(report) in (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
