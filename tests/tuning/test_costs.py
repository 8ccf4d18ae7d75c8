"""What passes of several sizes cost: measured once, kept, and corrected while a text is written."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ladechat.tuning.costs import SIZES, PassCosts, read_costs
from ladechat.tuning.saved import write_value
from tests.tiny import random_model, runner_for
from tests.tuning.clocked import ClockedRunner, is_the_clock_of


def flat(slots: int) -> float:
    return 0.001


def steep(slots: int) -> float:
    return 0.001 * slots


def usual(slots: int) -> float:
    return 0.001 + 0.0001 * slots


@pytest.fixture
def clocked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ClockedRunner]:
    def made(seconds: Callable[[int], float], max_positions: int = 512) -> ClockedRunner:
        runner = ClockedRunner(seconds, max_positions=max_positions)
        is_the_clock_of("tuning.costs", runner, monkeypatch)
        return runner

    return made


Clocked = Callable[..., ClockedRunner]


def measured(runner: ClockedRunner) -> PassCosts:
    costs = PassCosts(runner)
    costs.refresh()
    return costs


# --- measuring --------------------------------------------------------------------------------------------------------


def test_passes_are_timed_beside_the_text() -> None:
    runner = runner_for(random_model(1))
    list(runner.prefill(list(range(20))))
    costs = PassCosts(runner)
    costs.refresh()
    assert {1} < set(costs.known()) <= set(SIZES)
    assert list(runner.tokens) == list(range(19))
    assert costs.timed_seconds > 0
    assert (costs.curve(64) > 0).all()


def test_all_sizes_are_known_as_they_are(clocked: Clocked) -> None:
    costs = measured(clocked(usual))
    assert costs.known() == pytest.approx({size: usual(size) for size in SIZES})


def test_nothing_is_measured_twice(clocked: Clocked) -> None:
    runner = clocked(usual)
    costs = measured(runner)
    passes = len(runner.passes)
    for _ in range(20):
        costs.observe(1, 0.001)
        costs.refresh()
    assert len(runner.passes) == passes


def test_the_first_round_may_be_slow(clocked: Clocked) -> None:
    """Memory is taken, code is loaded: what is seen later counts."""
    runner = clocked(usual)
    runner.seconds = lambda slots: usual(slots) * (5 if len(runner.passes) <= len(SIZES) else 1)
    assert measured(runner).known() == pytest.approx({size: usual(size) for size in SIZES})


def test_a_plain_pass_costs_what_it_does_among_others_and_not_after_a_large_one(clocked: Clocked) -> None:
    def seconds(slots: int) -> float:
        first_round, after_larger = len(runner.passes) <= len(SIZES), max(runner.passes[-5:]) > slots == 1
        return usual(slots) * (5 if first_round else 2 if after_larger else 1)

    runner = clocked(seconds)
    assert measured(runner).known() == pytest.approx({size: usual(size) for size in SIZES})


def test_passes_of_a_large_model_are_timed_once_each(clocked: Clocked) -> None:
    runner = clocked(lambda slots: 0.5 + 0.01 * slots)
    measured(runner)
    assert sorted(runner.passes) == sorted(SIZES)


def test_after_a_stall_larger_passes_are_still_timed(clocked: Clocked) -> None:
    runner = clocked(usual)
    runner.seconds = lambda slots: usual(slots) * (1000 if len(runner.passes) == 2 else 1)
    assert measured(runner).known() == pytest.approx({size: usual(size) for size in SIZES})


def test_sizes_that_can_hardly_pay_are_not_timed_and_cost_in_proportion(clocked: Clocked) -> None:
    runner = clocked(steep)
    costs = measured(runner)
    assert max(runner.passes) < 20
    assert costs.curve(64) == pytest.approx([steep(slots) for slots in range(1, 65)])


def test_no_pass_uses_more_positions_than_there_are(clocked: Clocked) -> None:
    runner = clocked(usual, max_positions=5)
    costs = measured(runner)
    assert max(runner.passes) == 4
    assert len(costs.curve(64)) == 64


def test_it_is_known_what_timing_has_taken(clocked: Clocked) -> None:
    runner = clocked(usual)
    costs = measured(runner)
    took = costs.timed_seconds
    assert took == pytest.approx(sum(map(usual, runner.passes)))
    costs.observe(1, 0.001)
    assert costs.timed_seconds == took
    costs.measure()
    assert costs.timed_seconds > took
    assert costs.timed_seconds == pytest.approx(sum(map(usual, runner.passes)))


@given(st.integers(0, 1 << 30))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_larger_pass_never_costs_less_however_loud_the_machine_is(clocked: Clocked, seed: int) -> None:
    dice = random.Random(seed)
    curve = measured(clocked(lambda slots: usual(slots) * dice.choice([1, 1, 3, 20]))).curve(64)
    assert (np.diff(curve) >= -1e-12).all()


@pytest.mark.parametrize(("curve", "free"), [(flat, True), (usual, False), (steep, False)])
def test_slots_are_nearly_free_where_a_large_pass_costs_little_more(
    clocked: Clocked, curve: Callable[[int], float], free: bool
) -> None:
    assert measured(clocked(curve)).slots_are_nearly_free is free


@pytest.mark.parametrize(("curve", "slots"), [(flat, 64), (usual, 12), (steep, 2)])
def test_the_most_slots_for_the_price_of_some_plain_passes(
    clocked: Clocked, curve: Callable[[int], float], slots: int
) -> None:
    assert measured(clocked(curve)).slots_within(2.05) == slots


def test_between_measured_sizes_the_curve_is_straight_and_goes_on_in_proportion(clocked: Clocked) -> None:
    costs = measured(clocked(lambda slots: 0.001 + (0.001 if slots > 4 else 0) + (0.002 if slots > 16 else 0)))
    curve = costs.curve(80)
    assert curve[:4] == pytest.approx([0.001] * 4)
    assert curve[4] == pytest.approx(0.0015)  # 5 lies half-way between 4 and 6
    assert curve[5:16] == pytest.approx([0.002] * 11)
    assert curve[19] == pytest.approx(0.003)  # 20: half-way between 16 and 24
    assert curve[79] == pytest.approx(0.004 * 80 / 64)


# --- correcting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 5, 6, 30, 64])
@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_what_is_known_of_a_size_follows_what_is_seen(clocked: Clocked, slots: int, factor: float) -> None:
    costs = measured(clocked(usual))
    for _ in range(300):
        costs.observe(slots, factor * usual(slots))
    assert costs.curve(64)[slots - 1] == pytest.approx(factor * usual(slots), rel=0.02)


def test_where_the_machine_becomes_slower_all_sizes_do(clocked: Clocked) -> None:
    """Else sizes that are not used would look cheap for ever, or those that are used dear."""
    costs = measured(clocked(usual))
    for _ in range(200):
        costs.observe(1, 1.6 * usual(1))
        costs.observe(9, 1.6 * usual(9))
    expected = [1.6 * usual(slots) for slots in range(1, 65)]
    assert costs.curve(64) == pytest.approx(expected, rel=0.25)


def test_a_size_beside_the_seen_one_is_corrected_more_than_others(clocked: Clocked) -> None:
    costs = measured(clocked(usual))
    before = costs.curve(64)
    for _ in range(5):
        costs.observe(8, 1.5 * usual(8))
    grown = costs.curve(64) / before
    assert grown[7] > 1.03 * grown[0] > 1.03
    assert grown[7] > grown[63] > 1


@pytest.mark.parametrize("slots", [64, 65, 100, 123])
def test_passes_larger_than_any_that_was_timed_leave_costs_that_are_right_where_they_are(
    clocked: Clocked, slots: int
) -> None:
    costs = measured(clocked(usual))
    before = costs.curve(slots)
    for _ in range(100):
        costs.observe(slots, float(before[-1]))
    assert costs.curve(slots) == pytest.approx(before)


def test_one_pause_of_the_machine_makes_no_size_look_dear(clocked: Clocked) -> None:
    costs = measured(clocked(usual))
    before = costs.curve(64)
    costs.observe(1, 3.0)
    assert (costs.curve(64) <= 1.2 * before).all()


@pytest.mark.parametrize("slots", [1, 5, 8])
def test_passes_in_a_loud_moment_never_look_dearer_than_larger_ones(clocked: Clocked, slots: int) -> None:
    costs = measured(clocked(usual))
    for _ in range(20):
        costs.observe(slots, 3 * usual(slots))
        assert (np.diff(costs.curve(64)) >= -1e-12).all()


@pytest.mark.parametrize("price", [0.0, 0.2, 1.0])
def test_what_a_cached_token_adds_to_each_slot_is_learnt_from_passes_as_a_text_grows(
    clocked: Clocked, price: float
) -> None:
    """Then sizes are dear behind a long text that were only seen behind a short one."""
    runner = clocked(usual)

    def with_cache(slots: int) -> float:
        return usual(slots) + price * slots * usual(1) * len(runner.tokens) / 1000

    costs, dice = measured(runner), random.Random(1)
    for length in range(100, 800, 5):
        runner.tokens = [0] * length
        slots = dice.choice([1, 1, 2, 3, 4, 6])
        costs.observe(slots, with_cache(slots) * dice.uniform(0.95, 1.05))
    runner.tokens = [0] * 1200
    assert costs.curve(16) == pytest.approx([with_cache(slots) for slots in range(1, 17)], rel=0.1)
    assert [costs.seconds(slots) for slots in range(1, 17)] == pytest.approx(costs.curve(16))


def test_costs_stay_sane_whatever_is_seen(clocked: Clocked) -> None:
    costs, dice = measured(clocked(usual)), random.Random(0)
    for _ in range(3000):
        slots = dice.randint(1, 64)
        costs.observe(slots, usual(slots) * dice.uniform(0.8, 1.25))
    assert costs.curve(64) == pytest.approx([usual(slots) for slots in range(1, 65)], rel=0.3)


# --- keeping ----------------------------------------------------------------------------------------------------------


def test_a_second_session_times_nothing(clocked: Clocked, tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    first = PassCosts(clocked(usual), file)
    first.refresh()
    runner = clocked(usual)
    second = PassCosts(runner, file)
    second.refresh()
    assert not runner.passes and second.timed_seconds == 0
    assert second.known() == first.known()


def test_a_damaged_file_is_measured_again_and_put_right(clocked: Clocked, tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    file.write_text('{"seconds": {"1": -')
    costs = PassCosts(clocked(usual), file)
    costs.refresh()
    assert read_costs(file) == costs.known()


def test_what_cannot_be_kept_is_no_error(clocked: Clocked, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    costs = PassCosts(clocked(usual), tmp_path / "taken" / "costs.json")
    costs.refresh()
    assert costs.known()


def test_what_was_kept_is_corrected_too(clocked: Clocked, tmp_path: Path) -> None:
    """Kept by a machine that was busy, or is another by now."""
    file = tmp_path / "costs.json"
    write_value(file, {"seconds": {1: 0.01, 4: 0.02, 64: 0.1}})
    costs = PassCosts(clocked(usual), file)
    costs.refresh()
    for _ in range(300):
        costs.observe(1, 0.002)
        costs.observe(4, 0.002)
    assert costs.curve(4) == pytest.approx([0.002] * 4, rel=0.05)
    assert read_costs(file) == {1: 0.01, 4: 0.02, 64: 0.1}
