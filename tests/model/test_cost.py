"""What passes of several sizes cost: measured beside the text, and corrected while it is written."""

from collections.abc import Sequence
from typing import Any

import pytest

from ladechat.model import cost
from ladechat.model.cost import SIZES, TOO_DEAR, PassCosts
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


def test_other_sizes_are_looked_at_again_for_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch, dict.fromkeys(SIZES, 0.01))
    timed.costs.refresh()
    timed.asked.clear()
    timed.seconds = dict.fromkeys(SIZES, 0.02)
    for _ in range(4000):
        timed.costs.observe(4, 0.01)
        timed.costs.refresh()
    assert 5 <= len(timed.asked) <= cost.BUDGET_OF_KNOWN * 4000 * 0.01 / 0.01 + 1
    assert timed.costs(1) > 0.01


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
