"""What a plain step costs: the yardstick of the estimated speedup."""

import pytest

from ladechat.engine.plain_cost import PlainStepCost
from tests.tiny import random_model, runner_for
from tests.tuning.clocked import ClockedRunner, is_the_clock_of


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> ClockedRunner:
    runner = ClockedRunner(lambda slots: 0.01)
    is_the_clock_of("tuning.costs", runner, monkeypatch)
    return runner


def test_a_few_plain_passes_are_timed_first_and_leave_the_cache_as_it_was() -> None:
    runner = runner_for(random_model(1))
    list(runner.prefill(list(range(20))))
    cost = PlainStepCost(runner)
    assert cost.milliseconds(19) is None
    assert cost.refresh() > 0
    milliseconds = cost.milliseconds(19)
    assert milliseconds is not None and milliseconds > 0
    assert list(runner.tokens) == list(range(19))


def test_it_is_the_mean_of_the_latest_passes(runner: ClockedRunner) -> None:
    """What it is compared with is a sum of steps, loud moments and all."""
    cost = PlainStepCost(runner)
    for milliseconds in (10, 10, 40):
        cost.observe(0, milliseconds / 1000, 0.0)
    assert cost.milliseconds(0) == pytest.approx(20)


def test_to_the_pass_comes_what_the_engine_does_for_a_plain_step_of_any_answer(runner: ClockedRunner) -> None:
    cost = PlainStepCost(runner)
    for overhead in (0.004, 0.002, 0.0):
        cost.observe(0, 0.01, overhead)
    cost.begin_answer(compared=True)
    assert cost.milliseconds(0) is None
    cost.refresh()
    assert cost.milliseconds(0) == pytest.approx(12)


def timed(runner: ClockedRunner) -> PlainStepCost:
    """Return a cost after its first probes."""
    cost = PlainStepCost(runner)
    while cost.refresh():
        pass
    return cost


def test_nothing_is_timed_again_before_much_has_been_decoded(runner: ClockedRunner) -> None:
    cost = timed(runner)
    passes = len(runner.passes)
    assert cost.refresh(0.01) == 0
    assert len(runner.passes) == passes


def test_an_answer_is_compared_with_plain_passes_of_its_own_time(runner: ClockedRunner) -> None:
    """A lesson's answers were compared with passes of the scenes before, made while the machine was busy."""
    runner.seconds = lambda slots: 0.05
    cost = timed(runner)
    for _ in range(15):
        cost.observe(0, 0.05, 0.0)
    runner.seconds = lambda slots: 0.01
    cost.begin_answer(compared=True)
    assert cost.milliseconds(0) is None
    while cost.refresh():
        pass
    assert cost.milliseconds(0) == pytest.approx(10)


def test_the_first_probes_are_spread_over_the_answer(runner: ClockedRunner) -> None:
    cost = PlainStepCost(runner)
    assert cost.refresh() and len(runner.passes) == 1
    assert cost.refresh() and len(runner.passes) == 2


def test_an_answer_that_is_decoded_to_be_compared_gets_more_probes(runner: ClockedRunner) -> None:
    probes = []
    for compared in (False, True):
        cost = timed(runner)
        cost.begin_answer(compared=compared)
        before = len(runner.passes)
        for _ in range(20):
            cost.refresh(0.03)
        probes.append(len(runner.passes) - before)
    assert probes[0] < probes[1]


def test_probes_take_a_small_part_of_the_decoding_time(runner: ClockedRunner) -> None:
    cost = timed(runner)
    first = sum(0.01 for _ in runner.passes)
    probing = sum(cost.refresh(0.05) for _ in range(10_000))
    assert 0 < probing < 0.02 * 0.05 * 10_000
    assert set(runner.passes) == {1} and first == pytest.approx(0.01 * (len(runner.passes) - round(probing / 0.01)))


def test_a_machine_that_has_become_slower_is_noticed(runner: ClockedRunner) -> None:
    """Else a speedup would be measured against a plain pass that is gone."""
    cost = timed(runner)
    runner.seconds = lambda slots: 0.02
    for _ in range(10_000):
        cost.refresh(0.05)
    assert cost.milliseconds(0) == pytest.approx(20)


def test_a_longer_text_is_timed_by_itself(runner: ClockedRunner) -> None:
    cost = PlainStepCost(runner)
    cost.refresh()
    list(runner.prefill([0] * 2001))
    assert cost.milliseconds(2000) is None
    runner.seconds = lambda slots: 0.04
    assert cost.refresh() > 0
    assert cost.milliseconds(2000) == pytest.approx(40)
    assert cost.milliseconds(0) == pytest.approx(10)


def test_a_plain_step_counts_as_a_probe(runner: ClockedRunner) -> None:
    cost = PlainStepCost(runner)
    for _ in range(3):
        cost.observe(0, 0.005, 0.0)
    assert cost.milliseconds(0) == 5
    assert cost.refresh() == 0 and not runner.passes


def test_a_model_that_takes_one_token_a_pass_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a recurrent state has taken in cannot be undone."""
    recurrent = ClockedRunner(lambda slots: 0.01, single_token="It has a recurrent state.")
    is_the_clock_of("tuning.costs", recurrent, monkeypatch)
    assert PlainStepCost(recurrent).refresh(100.0) == 0
    assert not recurrent.passes


def test_a_brief_pass_counts_as_it_is_after_another(runner: ClockedRunner) -> None:
    """What a larger pass and its display leave in the processor's caches slows the next pass, not those of plain
    decoding: a speedup of 1.1 was shown where plain decoding wrote 979 tokens a second, and lookahead 753."""
    times = iter([0.003, 0.001])
    runner.seconds = lambda slots: next(times)
    cost = PlainStepCost(runner)
    assert cost.refresh() == pytest.approx(0.004)
    assert cost.milliseconds(0) == pytest.approx(1)
