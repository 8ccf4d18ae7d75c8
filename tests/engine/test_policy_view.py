"""What panels show of the adaptive policy: means over its latest forecasts."""

import pytest

from ladechat.decoder.drafters.drafter import ROOT, Proposal
from ladechat.engine.policy_view import PolicyView
from ladechat.tuning.adaptive import AdaptivePolicy
from tests.made_up_costs import MadeUpCosts, free, moderate
from tests.tuning.test_adaptive import CAT, NEVER, SAT, THE, chain, node, step

SIZES = (1, 2, 4, 8, 16, 32, 64)


def seen(policy: AdaptivePolicy, proposals: list[Proposal], text: list[int], steps: int) -> PolicyView:
    view = PolicyView(lambda: dict.fromkeys(SIZES, 1.0))
    for _ in range(steps):
        step(policy, proposals, text)
        view.observe(policy.forecast)
    return view


def test_what_is_expected_grows_with_the_slots() -> None:
    nodes = [node(ROOT, THE, 0.8), node(0, CAT, 0.5), node(1, SAT, 0.01)]
    choice = seen(AdaptivePolicy(MadeUpCosts(moderate)), [Proposal(nodes)], [NEVER], 300).choice(0, window=False)
    tokens = [one.tokens for one in choice.expected]
    assert [one.slots for one in choice.expected] == list(SIZES)
    assert tokens[0] == 1 and tokens == sorted(tokens)
    assert 1 <= choice.slots <= 4 and 1 <= choice.tokens <= tokens[-1]


def test_costs_count_the_rows_of_hidden_states_and_are_right_from_the_first_step_on() -> None:
    policy, rows = AdaptivePolicy(MadeUpCosts(free)), chain([THE, CAT], 0.9, kind="rows")._replace(from_hidden=True)
    overheads = []
    view = PolicyView(lambda: dict.fromkeys(SIZES, 1.0))
    for number in range(1, 6):
        step(policy, [rows], [THE, CAT], row_seconds=0.25)
        view.observe(policy.forecast)
        overheads.append(0.25 * len(policy.forecast.carriers))
        choice = view.choice(0, window=False)
        assert choice.slots == 3
        assert [one.ms for one in choice.costs[:2]] == [1000, pytest.approx(1000 * (1 + sum(overheads) / number))]
    assert sum(overheads) > 0
    without = seen(AdaptivePolicy(MadeUpCosts(free)), [chain([THE, CAT], 0.9)], [THE, CAT], 1).choice(0, window=False)
    assert without.slots == 3 and without.costs[1].ms == 1000


def test_pauses_change_no_mean() -> None:
    policy = AdaptivePolicy(MadeUpCosts(free))
    view = seen(policy, [chain([THE, CAT], 0.9)], [THE, CAT], 1)
    before = view.choice(0, window=True)
    view.observe(AdaptivePolicy(MadeUpCosts(free)).forecast)
    assert view.choice(0, window=True) == before
