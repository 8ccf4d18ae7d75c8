"""The adaptive policy: what is likely enough for what its slots cost, merged, and pauses where nothing pays."""

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

import pytest
import torch
from hypothesis import given, settings, strategies as st
from msgspec.structs import astuple

from ladechat.decoder.drafters.drafter import NOTHING, ROOT, Node, PassResult, Proposal
from ladechat.decoder.hidden import Hidden
from ladechat.decoder.policy import NOT_TAKEN, PassPlan
from ladechat.decoder.verify_mask import SlotTree
from ladechat.engine.policy_view import Why, decision_of, why
from ladechat.tuning.adaptive import MAX_DRAFTS, AdaptivePolicy
from tests.made_up_costs import Curve, MadeUpCosts, NotedCosts, dear, free, moderate

LAST, THE, CAT, SAT, DOG, RAN = range(6)
NEVER = 99
"""A token that nobody proposes."""


def node(parent: int, token: int, chance: float, kind: str | None = None) -> Node:
    """A node of a kind of its own, so that its chance is what it says; or of a named kind, whose rate is learnt."""
    return Node(parent, token, "test", kind or (parent, token, chance), chance)


def chain(tokens: Sequence[int], chance: float, whole: bool = False, kind: str | None = None) -> Proposal:
    return Proposal([node(i - 1 if i else ROOT, token, chance, kind) for i, token in enumerate(tokens)], whole)


def choose(curve: Curve, *proposals: Proposal) -> PassPlan:
    return AdaptivePolicy(MadeUpCosts(curve)).choose(LAST, proposals)


def paths(tree: SlotTree) -> set[tuple[int, ...]]:
    """The drafted texts of a tree, one for each slot but the first."""
    texts: list[tuple[int, ...]] = [()]
    for parent, token in zip(tree.parents[1:], tree.tokens[1:], strict=True):
        texts.append((*texts[parent], token))
    return set(texts[1:])


def step(
    policy: AdaptivePolicy,
    proposals: Sequence[Proposal],
    text: Sequence[int] = (NEVER,),
    row_seconds: float = 0.0,
    most_carriers: int = MAX_DRAFTS + 1,
    drafting_seconds: float = 0.0,
    free_drafters: bool = False,
) -> tuple[bool, PassPlan]:
    """One pass of the loop, with a model that goes on with `text`. Whether there were drafts, and what was chosen.

    The pass takes a second, and longer with each slot that carries rows; of those that may, only the first ones do.
    Looking for drafts takes `drafting_seconds`; drafters that are free are asked in a pause, too.
    """
    drafting = policy.drafting()
    asked = proposals if drafting or free_drafters else [NOTHING] * len(proposals)
    choice = policy.choose(LAST, asked)
    path, slot = [], 0
    for token in text:
        child = choice.tree.child(slot, token)
        if child is None:
            break
        path.append(slot := child)
    tokens = (*text, NEVER)[: len(path) + 1]
    slots, carriers = len(choice.tree), list(choice.carriers or ())[:most_carriers]
    states, seconds = torch.zeros(slots, 1), 1.0 + row_seconds * len(carriers)
    hidden = Hidden(states, carriers, states[carriers, None], lambda state: state) if carriers else None
    outcome = PassResult(choice.tree, states, [0] * slots, tuple(path), tokens, seconds, hidden)
    policy.observe(outcome, asked, drafting_seconds * drafting)
    return drafting, choice


# --- how many, and which ----------------------------------------------------------------------------------------------


def test_a_slot_has_the_source_of_the_drafter_that_was_surest() -> None:
    sure = Proposal([Node(ROOT, THE, "sure", "sure", 0.8)])
    unsure = Proposal([Node(ROOT, THE, "unsure", "unsure", 0.1)])
    for proposals in ((sure, unsure), (unsure, sure)):
        assert choose(free, *proposals).tree.sources == ["", "sure"]


def test_a_pass_has_no_more_drafts_than_it_may() -> None:
    many = Proposal([node(ROOT, token, 0.5) for token in range(3 * MAX_DRAFTS)])
    assert len(choose(free, many).tree) == MAX_DRAFTS + 1


def test_drafts_that_are_hardly_ever_right_take_no_slot_even_where_slots_are_free() -> None:
    assert len(choose(free, chain([THE], 1e-6)).tree) == 1


@st.composite
def proposals_of_several(draw: st.DrawFn) -> list[Proposal]:
    """Up to three proposals with up to four nodes each. Tokens are few, so that they agree now and then."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        nodes: list[Node] = []
        for index in range(draw(st.integers(0, 4))):
            token, chance = draw(st.integers(1, 3)), draw(st.floats(0.25, 1.0))
            nodes.append(Node(draw(st.integers(-1, index - 1)), token, "test", (number, index), chance))
        found.append(Proposal(nodes))
    return found


def chances_of(proposals: Sequence[Proposal]) -> dict[tuple[int, ...], float]:
    """For each drafted text how likely it is, by the drafter that is surest of it."""
    best: dict[tuple[int, ...], float] = {}
    for proposal in proposals:
        known: list[tuple[tuple[int, ...], float]] = []
        for one in proposal.nodes:
            text, chance = ((), 1.0) if one.parent == ROOT else known[one.parent]
            known.append(((*text, one.token), chance * one.chance))
            best[known[-1][0]] = max(known[-1][1], best.get(known[-1][0], 0.0))
    return best


@given(proposals_of_several(), st.lists(st.floats(0.0, 2.0), min_size=13, max_size=13))
def test_no_other_tree_is_expected_to_yield_more_for_its_cost(proposals: list[Proposal], more: list[float]) -> None:
    """Against all trees there are. The costs rise as they like."""
    cost: Curve = lambda slots: 1.0 + sum(more[: slots - 1])  # noqa: E731
    chances = chances_of(proposals)
    best = 1.0
    texts = sorted(chances)
    for chosen in range(1 << len(texts)):
        subset = {text for bit, text in enumerate(texts) if chosen >> bit & 1}
        if all(len(text) == 1 or text[:-1] in subset for text in subset):
            best = max(best, (1 + sum(chances[text] for text in subset)) / cost(1 + len(subset)))
    tree, slots, _ = choose(cost, *proposals)
    taken = paths(tree)
    assert len(taken) == len(tree) - 1
    assert (1 + sum(chances[text] for text in taken)) / cost(len(tree)) == pytest.approx(best)
    for proposal, own in zip(proposals, slots, strict=True):
        for one, slot in zip(proposal.nodes, own, strict=True):
            if slot != NOT_TAKEN:
                parent = 0 if one.parent == ROOT else own[one.parent]
                assert (tree.tokens[slot], tree.parents[slot]) == (one.token, parent)


# --- proposals that are taken as a whole ------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", [free, moderate, dear])
def test_a_whole_proposal_is_always_in_the_pass(curve: Curve) -> None:
    window = chain([THE, CAT, SAT], 0.01, whole=True)
    tree, slots, _ = choose(curve, window, chain([DOG], 0.05))
    assert {(THE,), (THE, CAT), (THE, CAT, SAT)} <= paths(tree)
    assert list(slots[0]) == [1, 2, 3]


def test_a_draft_that_a_whole_proposal_holds_already_costs_nothing() -> None:
    tree, slots, _ = choose(dear, chain([THE, CAT], 0.01, whole=True), chain([THE, CAT], 0.9))
    assert len(tree) == 3
    assert list(slots[1]) == [1, 2]


def test_beside_a_whole_proposal_another_slot_has_to_pay_for_itself_alone() -> None:
    """Ten slots are there already: an eleventh costs little beside them."""
    window = chain(list(range(10, 20)), 0.01, whole=True)
    assert len(choose(dear, window, chain([DOG], 0.5)).tree) == 12
    assert len(choose(dear, chain([DOG], 0.5)).tree) == 1


# --- what is said of it -----------------------------------------------------------------------------------------------

PASSES = st.lists(st.tuples(proposals_of_several(), st.lists(st.integers(1, 3), max_size=4)), min_size=1, max_size=12)


@settings(max_examples=60)
@given(PASSES, st.sampled_from([free, moderate, dear]), st.booleans())
def test_what_is_said_of_a_pass_agrees_with_its_slots_and_its_price(
    passes: list[tuple[list[Proposal], list[int]]], curve: Curve, window: bool
) -> None:
    """Whatever comes before it: nothing is said to be drafted in a pass of one slot, and no loss to be a gain."""
    policy = AdaptivePolicy(MadeUpCosts(curve))
    riding = [chain([DOG, RAN], 0.5, whole=True)] if window else []
    for proposals, text in passes:
        drafting, choice = step(policy, [*riding, *proposals], text or [NEVER])
        reason, tokens, cost, expected = astuple(decision_of(policy.forecast))
        assert bool(expected) == drafting
        if expected and len(choice.tree) in (powers := [1, 2, 4, 8, 16, 32, 64]):
            assert expected[powers.index(len(choice.tree))] == tokens
        assert (reason in (Why.PAUSED, Why.NONE)) == (len(choice.tree) == 1)
        assert (reason == Why.PAUSED) == (not drafting)
        if reason in (Why.PAYS, Why.TRIAL) and tokens != cost:  # both are rounded
            assert (tokens > cost) == (reason == Why.PAYS)
        assert reason != Why.WINDOW or window


def test_where_nothing_pays_there_are_trials_between_the_pauses() -> None:
    """Looking for drafts takes time here, so even the best pass with one yields less than a plain step."""
    policy = AdaptivePolicy(MadeUpCosts(lambda slots: 1.0 if slots <= 2 else 100.0))
    found = [step(policy, [chain([DOG], 0.3)], drafting_seconds=0.9)[1] and why(policy.forecast) for _ in range(30)]
    assert {Why.TRIAL, Why.PAUSED} <= set(found)
    assert found.index(Why.TRIAL) < found.index(Why.PAUSED)


@pytest.mark.parametrize("from_hidden", [False, True])
def test_what_a_pass_is_said_to_cost_counts_the_time_that_drafting_takes(from_hidden: bool) -> None:
    """Whoever drafts, and however they do it: so drafts that bring half a token more do not pay."""
    policy = AdaptivePolicy(MadeUpCosts(free))
    drafts = [chain([THE], 0.5)._replace(from_hidden=from_hidden)]
    found = [step(policy, drafts, drafting_seconds=1.0) and policy.forecast for _ in range(40)]
    assert all(forecast.cost == pytest.approx(2.0, abs=0.1) for forecast in found[1:] if forecast.drafting)
    assert Why.PAYS not in {why(forecast) for forecast in found[1:]}
    assert sum(not forecast.drafting for forecast in found) > 20


# --- what is learnt ---------------------------------------------------------------------------------------------------


def test_a_drafter_that_is_always_wrong_loses_its_slots_and_one_that_is_right_gets_them() -> None:
    policy = AdaptivePolicy(MadeUpCosts(moderate))
    wrong, right = chain([DOG, RAN], 0.6, kind="wrong"), chain([THE, CAT], 0.02, kind="right")
    for _ in range(100):
        step(policy, [wrong, right], [THE, CAT])
    assert paths(step(policy, [wrong, right], [THE, CAT])[1].tree) == {(THE,), (THE, CAT)}


def test_drafts_that_were_left_out_are_judged_too() -> None:
    """So nothing has to be drafted only to learn what it is worth."""
    policy = AdaptivePolicy(MadeUpCosts(moderate))
    unlikely = chain([THE], 0.01, kind="unlikely")
    assert len(step(policy, [unlikely], [THE])[1].tree) == 1
    for _ in range(12):
        step(policy, [unlikely], [THE])
    assert len(policy.choose(LAST, [unlikely]).tree) == 2


def test_every_pass_is_told_to_the_costs() -> None:
    costs = NotedCosts(free)
    policy = AdaptivePolicy(costs)
    step(policy, [chain([THE, CAT], 0.9)])
    step(policy, [NOTHING])
    assert costs.seen == [(3, 1.0), (1, 1.0)]


# --- pauses -----------------------------------------------------------------------------------------------------------


def pauses(drafting: Sequence[bool]) -> list[int]:
    """How long each pause was that has ended."""
    runs = [(on, len(list(steps))) for on, steps in groupby(drafting)]
    return [length for on, length in runs[:-1] if not on]


def worthless() -> list[Proposal]:
    return [chain([DOG, RAN], 0.01, kind="worthless")]


def test_where_nothing_pays_drafting_pauses_for_longer_and_longer_up_to_a_longest() -> None:
    policy = AdaptivePolicy(MadeUpCosts(dear))
    drafting = [step(policy, worthless())[0] for _ in range(1500)]
    seen = pauses(drafting)
    assert drafting[0] and len(seen) > 6
    assert seen[0] == 1
    longest = max(seen)
    for before, after in pairwise(seen):
        assert after == min(2 * before + 1, longest)
    assert seen[-1] == seen[-2] == longest
    assert sum(drafting[-500:]) < 0.1 * 500


def test_it_pauses_where_drafters_find_nothing_too() -> None:
    policy = AdaptivePolicy(MadeUpCosts(free))
    assert pauses([step(policy, [NOTHING])[0] for _ in range(500)])


def test_a_pause_ends_and_drafts_that_pay_go_on_without_another() -> None:
    policy = AdaptivePolicy(MadeUpCosts(moderate))
    for _ in range(500):
        step(policy, worthless())
    paying = [chain([THE, CAT], 0.9, kind="paying")]
    drafting = [step(policy, paying, [THE, CAT])[0] for _ in range(300)]
    assert len(pauses(drafting)) <= 1
    assert all(drafting[100:])


def test_drafts_of_a_drafter_that_takes_no_time_are_used_in_a_pause_where_they_pay() -> None:
    policy = AdaptivePolicy(MadeUpCosts(moderate))
    while policy.drafting():
        step(policy, worthless())
    for _ in range(3):
        asked, plan = step(policy, worthless(), free_drafters=True)
        assert not asked and len(plan.tree) == 1 and plan.slots == [[NOT_TAKEN] * 2]
        while policy.drafting():
            step(policy, worthless())
        sure = [chain([THE, CAT], 0.9, kind="sure")]
        asked, plan = step(policy, sure, [THE, CAT], free_drafters=True)
        assert not asked and paths(plan.tree) == {(THE,), (THE, CAT)}
        while policy.drafting():
            step(policy, worthless())


def test_after_drafts_have_paid_pauses_begin_short_again() -> None:
    policy = AdaptivePolicy(MadeUpCosts(moderate))
    for _ in range(500):
        step(policy, worthless())
    for _ in range(100):
        step(policy, [chain([THE, CAT], 0.9, kind="paying")], [THE, CAT])
    assert pauses([step(policy, worthless())[0] for _ in range(300)])[:2] == [1, 3]


@pytest.mark.parametrize("text", [[THE, CAT], [NEVER]])
def test_drafts_that_are_expected_to_pay_are_never_paused(text: list[int]) -> None:
    policy = AdaptivePolicy(MadeUpCosts(free))
    assert all(step(policy, [chain([THE, CAT], 0.5, kind="a"), chain([DOG], 0.5)], text)[0] for _ in range(300))


def test_a_window_is_never_paused() -> None:
    """It has to move on with every pass."""
    policy = AdaptivePolicy(MadeUpCosts(dear))
    window = [chain([DOG, RAN], 0.01, whole=True, kind="window")]
    assert all(step(policy, window)[0] for _ in range(300))


def test_without_proposals_a_pass_is_a_plain_one() -> None:
    every: Callable[[Curve], int] = lambda curve: len(choose(curve, NOTHING, NOTHING).tree)  # noqa: E731
    assert [every(curve) for curve in (free, moderate, dear)] == [1, 1, 1]
