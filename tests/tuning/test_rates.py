"""How often drafts are right, learnt from what was emitted."""

import pytest
from hypothesis import given, strategies as st

from ladechat.decoder.drafters.drafter import ROOT, Node
from ladechat.tuning.learning import AcceptanceRates

THE, CAT, SAT, ON, DOG, RAN = range(6)


def node(parent: int, token: int, kind: str, chance: float = 0.5) -> Node:
    return Node(parent, token, "test", kind, chance)


def test_a_kind_that_was_never_seen_has_the_chance_that_its_drafter_assumes() -> None:
    assert AcceptanceRates()(node(ROOT, CAT, "new", 0.3)) == 0.3


@pytest.mark.parametrize("every", [1, 2, 5, 20])
def test_a_rate_settles_where_it_belongs_whatever_was_assumed(every: int) -> None:
    for assumed in (0.02, 0.5, 0.98):
        rates, one = AcceptanceRates(), node(ROOT, CAT, "kind", assumed)
        for step in range(2000):
            rates.observe([one], [CAT if step % every == 0 else DOG])
        assert rates(one) == pytest.approx(1 / every, abs=0.05)


def test_what_was_long_ago_counts_less_a_text_changes() -> None:
    rates, one = AcceptanceRates(), node(ROOT, CAT, "kind")
    for _ in range(10_000):
        rates.observe([one], [CAT])
    for _ in range(1_000):
        rates.observe([one], [DOG])
    assert rates(one) < 0.05


def test_a_single_accident_hardly_moves_a_rate() -> None:
    rates, one = AcceptanceRates(), node(ROOT, CAT, "kind", 0.5)
    rates.observe([one], [DOG])
    assert 0.4 < rates(one) < 0.5


trees = st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 3), st.integers(0, 2)), max_size=12).map(
    lambda drawn: [
        node(parent % (index + 1) - 1, token, f"kind {kind}") for index, (parent, token, kind) in enumerate(drawn)
    ]
)


@given(trees, st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_a_rate_moves_by_the_nodes_whose_paths_were_emitted_and_by_no_others(
    nodes: list[Node], tokens: list[int]
) -> None:
    rates = AcceptanceRates()
    rates.observe(nodes, tokens)
    judged: dict[object, set[bool]] = {}
    for one in nodes:
        before: list[int] = []
        parent = one.parent
        while parent != ROOT:
            before.insert(0, nodes[parent].token)
            parent = nodes[parent].parent
        if tokens[: len(before)] == before and len(before) < len(tokens):
            judged.setdefault(one.kind, set()).add(tokens[len(before)] == one.token)
    for one in nodes:
        right = judged.get(one.kind)
        if right is None:
            assert rates(one) == one.chance
        elif right == {True}:
            assert rates(one) > one.chance
        elif right == {False}:
            assert rates(one) < one.chance
        assert 0 <= rates(one) <= 1
