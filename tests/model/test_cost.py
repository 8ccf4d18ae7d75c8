"""What passes of several sizes cost: measured beside the text, and corrected while it is written."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from ladechat.model import cost
from ladechat.model.cost import MOST_ASSUMED, SIZES, TOO_DEAR, PassCosts
from tests.tiny import random_model, runner_for


class Timed:
    """Costs of a runner whose passes take what they are told to take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float]) -> None:
        self.seconds = seconds
        self.asked: list[int] = []
        self.costs = PassCosts(runner_for(random_model(1)))
        monkeypatch.setattr(PassCosts, "_time", lambda _, slots: self._take(slots))

    def _take(self, slots: int) -> float:
        self.asked.append(slots)
        return self.seconds[slots]


def test_passes_are_timed_beside_the_text() -> None:
    runner = runner_for(random_model(1))
    list(runner.prefill(list(range(20))))
    costs = PassCosts(runner)
    known = [costs.measured]
    costs.refresh()
    known.append(costs.measured)
    assert known == [False, True]
    assert costs(1) > 0 and costs(6) == pytest.approx((costs(4) + costs(8)) / 2)
    assert list(runner.tokens) == list(range(19))


@pytest.mark.parametrize(
    ("plain", "slower", "lost"),
    [(0.001, 0.0006, 0.4), (0.001, 0.0, 0.0), (0.02, 0.012, None), (0.001, 0.009, MOST_ASSUMED)],
)
def test_what_plain_passes_lose_behind_others_is_timed_where_weights_may_be_in_a_cache(
    monkeypatch: pytest.MonkeyPatch, plain: float, slower: float, lost: float
) -> None:
    """One of 16 slots takes four plain passes' time, and the two plain ones behind it are slower."""
    timed = Timed(monkeypatch, {size: plain * (1 + (size - 1) / 5) for size in SIZES})
    since = [9]

    def time(_: PassCosts, slots: int) -> float:
        since[0] = 0 if slots > 1 else since[0] + 1
        return timed.seconds[slots] + slower * (1 <= since[0] <= 2)

    monkeypatch.setattr(PassCosts, "_time", time)
    timed.costs.refresh()
    assert timed.costs.lost == pytest.approx(lost)


def test_nothing_is_said_of_what_is_lost_where_slots_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(0)
    timed = Timed(monkeypatch, dict.fromkeys(SIZES, 0.001))
    monkeypatch.setattr(PassCosts, "_time", lambda _, slots: timed.seconds[slots] * dice.uniform(1, 1.1))
    timed.costs.refresh()
    assert timed.costs.lost == 0


def test_sizes_that_can_hardly_pay_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, {size: 0.001 * size for size in SIZES})
    timed.costs.refresh()
    assert set(timed.asked) == {1, 2, 4, 8, 16}  # of those that are dearer than that, the first that was timed
    assert timed.seconds[8] > TOO_DEAR * timed.seconds[1]
    assert timed.costs(32) == pytest.approx(2 * timed.costs(16))


def test_costs_follow_the_passes_that_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, dict.fromkeys(SIZES, 0.01))
    timed.costs.refresh()
    for _ in range(200):
        timed.costs.observe(6, 0.03)
    assert timed.costs(6) == pytest.approx(0.03, rel=0.01)
    assert timed.costs(2) == timed.costs(16) == 0.01


def test_where_plain_passes_become_slower_so_do_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one, together = (Timed(monkeypatch, {size: 0.005 + 0.001 * size for size in SIZES}) for _ in range(2))
    for timed in (one_by_one, together):
        timed.costs.refresh()
    before = {slots: together.costs(slots) for slots in (1, 2, 5, 16)}
    for _ in range(12):
        one_by_one.costs.observe(1, 0.009)
    together.costs.observe(1, *[0.009] * 12)
    slower = together.costs(1) / before[1]
    assert 1.3 < slower < 1.5
    for slots, seconds in before.items():
        assert together.costs(slots) == pytest.approx(slower * seconds)
        assert together.costs(slots) == pytest.approx(one_by_one.costs(slots))


def test_passes_that_live_on_the_cache_become_slower_by_as_much_as_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a factor, large ones would look dearer than they are, would not be tried, and nothing would put that right."""
    timed = Timed(monkeypatch, {size: 0.0002 + 0.0001 * size for size in SIZES})
    timed.costs.refresh()
    before = timed.costs.known()
    timed.costs.observe(1, *[0.0005] * 40)
    slower = timed.costs(1) - before[1]
    assert slower == pytest.approx(0.0002, rel=0.1)
    for slots, seconds in timed.costs.known().items():
        assert seconds - before[slots] == pytest.approx(slower)
    timed.costs.observe(1, *[0.0001] * 40)
    assert all(seconds >= timed.costs(1) for seconds in timed.costs.known().values())


@pytest.mark.parametrize("sizes", [(1, 16), (1, 4, 16), (1, 2, 4, 8, 16)])
@pytest.mark.parametrize("slower", [0.93, 1.0, 1.6])
def test_costs_settle_where_passes_of_a_size_that_was_not_timed_take_turns_with_plain_ones(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], slower: float
) -> None:
    monkeypatch.setattr(cost, "SIZES", sizes)
    timed = Timed(monkeypatch, {size: 0.01 + 0.0005 * size for size in sizes})
    timed.costs.measure()
    real = {1: 0.0105, 3: slower * timed.costs(3)}
    for _ in range(400):
        for slots, seconds in real.items():
            timed.costs.observe(slots, seconds)
    for slots, seconds in real.items():
        assert timed.costs(slots) == pytest.approx(seconds, rel=0.1)
    assert all(0.004 < seconds < 0.1 for seconds in timed.costs.known().values())


def test_a_pause_of_the_machine_makes_no_size_look_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, {size: 0.005 + 0.001 * size for size in SIZES})
    timed.costs.refresh()
    before = timed.costs.known()
    timed.costs.observe(1, *[0.006] * 31, 3.0)
    timed.costs.observe(4, 3.0)
    timed.costs.observe(1, 3.0)
    for size, seconds in timed.costs.known().items():
        assert before[size] <= seconds < 1.4 * before[size]


def test_other_sizes_are_looked_at_again_for_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, dict.fromkeys(SIZES, 0.01))
    timed.costs.refresh()
    timed.asked.clear()
    timed.seconds = dict.fromkeys(SIZES, 0.02)
    for _ in range(20_000):
        timed.costs.observe(4, 0.01)
        timed.costs.refresh()
    assert 5 <= len(timed.asked) <= cost.BUDGET_OF_KNOWN * 20_000 * 0.01 / 0.01 + 1
    assert timed.costs(1) > 0.01


def test_passes_of_about_the_longest_that_live_on_the_cache_leave_the_others_where_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timed = Timed(monkeypatch, {size: 0.0029 + 0.0004 * (size - 1) for size in SIZES})
    timed.costs.refresh()
    before = timed.costs.known()
    for _ in range(200):
        timed.costs.observe(1, *[0.0033] * 20)
        timed.costs.observe(1, *[0.0029] * 20)
    for slots, seconds in timed.costs.known().items():
        assert seconds == pytest.approx(before[slots], rel=0.02)


def test_it_is_known_what_timing_has_taken() -> None:
    costs = PassCosts(runner_for(random_model(1)))
    costs.refresh()
    first = costs.timed_seconds
    assert first > 0
    costs.observe(1, 0.001)
    assert costs.timed_seconds == first
    costs.measure()
    assert costs.timed_seconds > first


def test_all_is_timed_anew_when_more_passes_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiled:
        sizes: Sequence[int] = []

        def prepare(self) -> None: ...

    timed = Timed(monkeypatch, dict.fromkeys(SIZES, 0.01))
    compiled: Any = Compiled()
    timed.costs._runner.compiled = compiled  # type: ignore[attr-defined]  # no part of what a decoder needs
    timed.costs.refresh()
    timed.seconds = dict.fromkeys(SIZES, 0.005)
    timed.costs.refresh()
    assert timed.costs(1) == 0.01
    compiled.sizes = [1, 4]
    timed.costs.refresh()
    assert timed.costs(1) == 0.005


def test_a_pass_that_is_filled_up_costs_what_it_is_filled_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiled:
        sizes: Sequence[int] = (1, 4, 16)

        def prepare(self) -> None: ...

    timed = Timed(monkeypatch, {size: 0.01 + 0.001 * size for size in SIZES})
    timed.costs._runner.compiled = Compiled()  # type: ignore[attr-defined]  # no part of what a decoder needs
    timed.costs.refresh()
    assert [timed.costs(slots) for slots in (1, 2, 3, 4)] == pytest.approx([0.011, 0.014, 0.014, 0.014])
    assert timed.costs(5) == timed.costs(16) == pytest.approx(0.026)
    assert timed.costs(24) == pytest.approx(0.034)
    assert not {2, 8} & set(timed.asked)


def test_one_slow_moment_spoils_no_size(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, dict.fromkeys(SIZES, 0.01))
    usual = Timed._take
    monkeypatch.setattr(Timed, "_take", lambda one, slots: usual(one, slots) * (5 if len(one.asked) in (2, 3) else 1))
    timed.costs.refresh()
    assert set(timed.costs.known().values()) == {0.01}


def test_between_two_steps_all_sizes_are_timed_once_and_the_next_steps_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, dict.fromkeys(SIZES, 0.01))
    for _ in range(cost.FIRST_PROBES):
        timed.asked.clear()
        assert timed.costs.refresh(rounds=1) is True
        assert sorted(timed.asked) == sorted(timed.costs.known())
    timed.asked.clear()
    assert timed.costs.refresh(rounds=1) is False and not timed.asked
