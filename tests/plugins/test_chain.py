"""The best chain of several trees, against a search through all chains."""

from collections.abc import Iterator

from hypothesis import given, strategies as st

from ladechat.decoder.drafters.drafter import ROOT, Node, Proposal
from ladechat.plugins.chain import best_chain


def proposal(*nodes: tuple[int, int, float]) -> Proposal:
    """Nodes as parent, token, chance."""
    return Proposal([Node(parent, token, "", "", chance) for parent, token, chance in nodes])


def rate(node: Node) -> float:
    return node.chance


def chains(proposals: list[Proposal]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every chain below the root with its expected tokens."""
    best: dict[tuple[int, ...], float] = {}
    for one in proposals:
        paths: list[tuple[int, ...]] = []
        for node in one.nodes:
            paths.append((*(() if node.parent == ROOT else paths[node.parent]), node.token))
            best[paths[-1]] = max(best.get(paths[-1], 0.0), node.chance)
    for path in best:
        chance, expected = 1.0, 0.0
        for end in range(1, len(path) + 1):
            chance *= best[path[:end]]
            expected += chance
        yield path, expected


def test_the_chain_with_the_most_expected_tokens_is_taken() -> None:
    cat, dog = proposal((-1, 1, 0.5), (0, 2, 0.8)), proposal((-1, 3, 0.6), (0, 4, 0.3), (1, 5, 0.5))
    chain = best_chain([cat, dog], rate)
    assert chain.tokens == [1, 2]
    assert chain.chances == [0.5, 0.4]


def test_one_proposal_goes_on_where_another_ends() -> None:
    chain = best_chain([proposal((-1, 1, 0.9)), proposal((-1, 1, 0.1), (0, 2, 0.5))], rate)
    assert chain.tokens == [1, 2]
    assert chain.chances == [0.9, 0.45]


def test_without_proposals_there_is_no_chain() -> None:
    assert best_chain([], rate).tokens == best_chain([proposal()], rate).tokens == []


@st.composite
def trees(draw: st.DrawFn) -> Proposal:
    size = draw(st.integers(0, 7))
    tokens, chances = st.integers(0, 2), st.floats(0.01, 1)
    return proposal(*((draw(st.integers(-1, index - 1)), draw(tokens), draw(chances)) for index in range(size)))


@given(st.lists(trees(), max_size=3))
def test_no_chain_has_more_expected_tokens(proposals: list[Proposal]) -> None:
    chain = best_chain(proposals, rate)
    every = dict(chains(proposals))
    assert sum(chain.chances) >= max(every.values(), default=0.0) - 1e-9
    assert list(chain.chances) == sorted(chain.chances, reverse=True)
    if chain.tokens:
        assert abs(every[tuple(chain.tokens)] - sum(chain.chances)) < 1e-9
