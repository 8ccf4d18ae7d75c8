"""The best chain of several proposals, for an engine that verifies one line of tokens a request, and no trees."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ladechat.decoder.drafters.drafter import ROOT, Node, Proposal


class Chain(NamedTuple):
    """Drafted tokens, each of which follows the one before.

    Attributes:
        tokens: their ids.
        chances: for each the chance that it and all before it are right: falling, 0 to 1.
    """

    tokens: list[int]
    chances: list[float]


def best_chain(proposals: Sequence[Proposal], rate: Callable[[Node], float]) -> Chain:
    """Return the chain with the most expected tokens in the tree of all proposals. `rate` returns the chance that a
    node is right if its parent is; one that several propose has the highest of their rates.

    Of ``cat → sat`` with rates 0.5 and 0.8, and ``dog → ran → off`` with 0.6, 0.3 and 0.5, it is ``cat sat``: expected
    are 0.5 + 0.5 · 0.8 = 0.9 tokens, and 0.6 + 0.6 · 0.3 + 0.6 · 0.3 · 0.5 = 0.87.
    """
    places: dict[tuple[int, int], int] = {}  # of each merged node, by parent and token
    parents, rates = list[int](), list[float]()
    for proposal in proposals:
        own = list[int]()
        for node in proposal.nodes:
            key = (ROOT if node.parent == ROOT else own[node.parent], node.token)
            place = places.setdefault(key, len(rates))
            own.append(place)
            if place == len(rates):
                parents.append(key[0])
                rates.append(rate(node))
            else:
                rates[place] = max(rates[place], rate(node))
    following, tokens = _best_children(parents, rates), [token for _, token in places]
    chain, chance, place = Chain([], []), 1.0, following[ROOT]
    while place != ROOT:
        chance *= rates[place]
        chain.tokens.append(tokens[place])
        chain.chances.append(chance)
        place = following[place]
    return chain


def _best_children(parents: Sequence[int], rates: Sequence[float]) -> list[int]:
    """Return for each node, and at the end for the root, the child with which its best chain goes on, or `ROOT`."""
    expected, best = [0.0] * (len(rates) + 1), [ROOT] * (len(rates) + 1)
    for place in reversed(range(len(rates))):  # parents come first
        tokens = rates[place] * (1 + expected[place])
        if tokens > expected[parents[place]]:
            expected[parents[place]], best[parents[place]] = tokens, place
    return best
