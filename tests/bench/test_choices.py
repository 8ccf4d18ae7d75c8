"""The clock that is made up, and what auto's choices are worth by it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.choices import OnClock, of_session, page_table, sessions_of
from benchmarks.demo_decoding import BUNDLED
from benchmarks.machines import MACHINES, Machine
from ladechat.decoder.verify_mask import causal_layout
from ladechat.model.loading import load
from tests.tiny import random_model, runner_for

ROOT = Path(__file__).parents[2]
TWO = Machine(
    {1: 10.0, 4: 16.0, 8: 20.0},
    filled_up=False,
    plain_us=50,
    guesses_us=150,
    asked_us=5,
    behind_us=7,
    rode_us=3,
    ridden_us=2,
)


def test_a_pass_takes_what_is_written_down_and_in_between_in_proportion() -> None:
    assert TWO.pass_seconds(1) == pytest.approx(0.010) and TWO.pass_seconds(4) == pytest.approx(0.016)
    assert TWO.pass_seconds(6) == pytest.approx(0.018)
    assert TWO.pass_seconds(16) == pytest.approx(0.040)


def test_a_compiled_pass_takes_what_the_next_size_does_but_a_plain_one_what_itself_does() -> None:
    compiled = Machine({1: 10.0, 4: 16.0, 8: 20.0}, True, 50, 150, 5, 7, 3, 2)
    assert [compiled.pass_seconds(slots) for slots in (1, 2, 4, 5)] == pytest.approx([0.010, 0.016, 0.016, 0.020])


def test_the_clock_goes_on_with_passes_and_with_what_is_done_besides_and_with_nothing_else() -> None:
    runner = OnClock(runner_for(random_model(0)), TWO)
    for _ in runner.prefill([3, 4, 5, 6]):
        pass
    assert runner.now == 0
    runner.read(runner.forward(causal_layout([6])))
    runner.keep([])  # it was only timed
    assert runner.now == pytest.approx(0.010)
    runner.read(runner.forward(causal_layout([6, 7, 8, 9])))
    assert runner.now == pytest.approx(0.026)
    runner.keep([0])
    assert runner.now == pytest.approx(0.026150)


def test_what_else_is_done_makes_the_passes_behind_it_longer_by_what_is_lost() -> None:
    shared = replace(TWO, lost=0.5)
    steps = [1, 1, 8, *[1] * 60]
    longer = TWO.step_seconds(8) - TWO.step_seconds(1)
    assert shared.seconds(steps) == pytest.approx(TWO.seconds(steps) + 0.5 * longer)
    assert shared.seconds([1, 8]) == pytest.approx(TWO.seconds([1, 8]))  # it shows behind it


def test_the_clock_goes_on_as_is_reckoned_for_fixed_settings() -> None:
    shared = replace(TWO, lost=0.5)
    runner, steps = OnClock(runner_for(random_model(0)), shared), [1, 8, 1, 4, 1, 1, 8]
    for _ in runner.prefill([3, 4, 5, 6]):
        pass
    for slots in steps:
        runner.read(runner.forward(causal_layout([6] * slots)))
        runner.keep([0])
    assert runner.now == pytest.approx(shared.seconds(steps))
    runner.works(1000)
    before = runner.now
    runner.forward(causal_layout([6]))
    away, runner.now = runner.now - before, 0.0
    runner.keep([])
    runner.settle()
    runner.forward(causal_layout([6]))
    assert runner.now == pytest.approx(shared.pass_seconds(1)) and away > runner.now


def test_the_page_has_the_table_that_was_computed() -> None:
    report = json.loads((ROOT / "benchmarks" / "results" / "choices.json").read_text(encoding="utf-8"))
    assert set(report) == set(MACHINES)
    assert page_table(report) in (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")


@pytest.mark.full
def test_auto_comes_near_the_best_fixed_settings_which_nobody_knows_before() -> None:
    loaded = load(BUNDLED, BUNDLED.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
    sessions = sessions_of(loaded)
    for machine, found in of_session(loaded, sessions["code"]).items():
        assert found["auto_to_best"] > 0.88, (machine, found)
