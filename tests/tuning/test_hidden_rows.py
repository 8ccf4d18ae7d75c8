"""Which slots carry rows for hidden transfer, and what the policy says it expects of a pass."""

from collections.abc import Sequence

import pytest
import torch

from ladechat import registry
from ladechat.decoder.drafters.drafter import PassResult, Proposal
from ladechat.decoder.drafters.hidden_transfer import HiddenTransferDrafter
from ladechat.decoder.hidden import Hidden
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.adaptive import AdaptivePolicy
from tests.decoder.table_runner import random_table
from tests.made_up_costs import MadeUpCosts, NotedCosts, dear, free, shared
from tests.made_up_maps import made_up_kinds
from tests.tuning.test_adaptive import CAT, DOG, LAST, NEVER, THE, chain, step


def from_hidden(tokens: Sequence[int], chance: float, kind: str | None = None) -> Proposal:
    return chain(tokens, chance, kind=kind)._replace(from_hidden=True)


def carrying(policy: AdaptivePolicy, proposals: Sequence[Proposal], row_seconds: float, steps: int = 40) -> int:
    """In how many of some passes that go on with `the cat` slots carry rows."""
    return sum(bool(step(policy, proposals, [THE, CAT], row_seconds)[1].carriers) for _ in range(steps))


def test_slots_carry_rows_while_the_drafts_made_of_them_save_more_time_than_the_rows_take() -> None:
    drafts = [from_hidden([THE, CAT], 0.9, "rows")]
    assert carrying(AdaptivePolicy(MadeUpCosts(free)), drafts, row_seconds=0.1) == 40
    assert carrying(AdaptivePolicy(MadeUpCosts(free)), drafts, row_seconds=3.0) < 10


def test_drafts_of_hidden_states_save_nothing_where_another_drafter_has_the_same_ones() -> None:
    drafts = [chain([THE, CAT], 0.9, kind="cheap"), from_hidden([THE, CAT], 0.9, "rows")]
    assert carrying(AdaptivePolicy(MadeUpCosts(free)), drafts, row_seconds=0.1) < 10


def test_no_slot_carries_rows_in_a_pause_or_where_no_drafter_would_use_them() -> None:
    assert carrying(AdaptivePolicy(MadeUpCosts(free)), [chain([THE, CAT], 0.9)], 0.0) == 0
    policy = AdaptivePolicy(MadeUpCosts(dear))
    choices = [step(policy, [from_hidden([DOG], 0.01)]) for _ in range(60)]
    assert any(not drafting for drafting, _ in choices)
    assert not any(choice.carriers for drafting, choice in choices if not drafting)


def test_passes_with_rows_do_not_make_slots_look_dear() -> None:
    costs = NotedCosts(free)
    policy = AdaptivePolicy(costs)
    for _ in range(40):
        step(policy, [from_hidden([THE, CAT], 0.9, "rows")], [THE, CAT], 3.0)
    assert costs.seen and {seconds for _, seconds in costs.seen} == {1.0}


def test_a_pass_whose_rows_were_all_left_out_is_one_without() -> None:
    costs = NotedCosts(free)
    policy = AdaptivePolicy(costs)
    _, choice = step(policy, [from_hidden([THE, CAT], 0.9, "rows")], [THE, CAT], most_carriers=0)
    assert choice.carriers
    assert costs.seen == [(3, 1.0)]
    assert policy.forecast.overhead < 0.1


def test_what_rows_cost_is_shared_among_the_slots_that_carried_some() -> None:
    """Two may carry rows here, and one does, which takes a quarter of a second; so two would take half a second."""
    policy = AdaptivePolicy(MadeUpCosts(free))
    proposals = [from_hidden([THE], 0.5), from_hidden([DOG], 0.4)]
    step(policy, proposals, [NEVER], 0.25, most_carriers=1)
    _, choice = step(policy, proposals, [NEVER], 0.25, most_carriers=1)
    assert len(choice.carriers or ()) == 2
    assert policy.forecast.cost == pytest.approx(1.5, abs=0.05)
    assert policy.forecast.overhead == pytest.approx(0.25, abs=0.05)


def test_heads_have_the_hidden_states_of_all_slots_and_their_passes_are_none_without() -> None:
    costs = NotedCosts(free)
    policy, states = AdaptivePolicy(costs), torch.zeros(3, 1)
    proposals = [from_hidden([THE, CAT], 0.9, "heads")]
    tree, _, carriers = policy.choose(LAST, proposals)
    assert len(tree) == 3 and carriers
    hidden = Hidden(states, (), None, lambda state: state)
    policy.observe(PassResult(tree, states, [0] * 3, (), (NEVER,), 1.25, hidden), proposals, 0.0)
    assert not costs.seen and policy.forecast.overhead == pytest.approx(0.25)


def test_in_auto_every_slot_that_the_policy_chooses_can_carry_rows() -> None:
    """Drafts stand after a window of 70 slots and more."""
    runner = random_table(8, 0)
    auto = registry.make("auto", runner, shared(free, window=True, trained=made_up_kinds(2, 8)))
    (drafter,) = (one for one in auto.drafters if isinstance(one, HiddenTransferDrafter))
    assert list(drafter.want(SlotTree.chain([0] * 140)).carriers) == list(range(140))


def test_passes_that_are_faster_than_was_measured_make_no_cost_negative() -> None:
    """As where costs were measured while the machine was busy: an event with such a number would not be read."""
    policy = AdaptivePolicy(MadeUpCosts(free))
    proposals = [from_hidden([THE, CAT], 0.9, "rows")]
    for _ in range(5):
        step(policy, proposals, [NEVER], row_seconds=-0.9)
        assert policy.forecast.cost >= 1 and policy.forecast.overhead >= 0
