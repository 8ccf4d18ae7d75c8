"""The guesses of one step as a tree: the branches of the draft tree, and the prefixes that guesses share."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ladechat import protocol


class GuessLine(NamedTuple):
    """One guess, on a line of its own.

    Attributes:
        guess: the guess.
        shared: number of its first tokens that are in the lines above already.
        forks: for each number of shared tokens up to `shared`, whether a later line forks off there too.
    """

    guess: protocol.Candidate
    shared: int
    forks: tuple[bool, ...]


def in_lines(guesses: Iterable[protocol.Candidate]) -> list[GuessLine]:
    """Return guesses as lines, those with a common prefix below each other, prefixes in order of first appearance.

    Guesses that were not tried are no part of the tree, and come last.
    """
    guesses = list(guesses)
    tried = _ordered([guess for guess in guesses if guess.tried], 0)
    ids = [guess.token_ids for guess in tried]
    shared = [0, *(min(_common(one, other), len(other) - 1) for one, other in pairwise(ids))]
    lines = [
        GuessLine(guess, own, tuple(_forks_again(shared[index + 1 :], depth) for depth in range(own + 1)))
        for index, (guess, own) in enumerate(zip(tried, shared, strict=False))
    ]
    return [*lines, *(GuessLine(guess, 0, (False,)) for guess in guesses if not guess.tried)]


def branches(draft: protocol.DraftTree, known: Sequence[protocol.Candidate]) -> list[protocol.Candidate]:
    """Return a draft tree's branches, from the last token to each leaf, except prefixes of `known` guesses."""
    inner = set(draft.parents)
    shown = {tuple(each.token_ids[:end]) for each in known if each.tried for end in range(1, len(each.token_ids) + 1)}
    found: list[protocol.Candidate] = []
    for leaf in range(len(draft.token_ids)):
        if leaf in inner:
            continue
        path = [leaf]
        while 0 <= (parent := draft.parents[path[0]]) < path[0]:
            path.insert(0, parent)
        ids = [draft.token_ids[node] for node in path]
        if tuple(ids) not in shown:
            found.append(
                protocol.Candidate(
                    token_ids=ids,
                    pieces=[draft.pieces[node] for node in path],
                    source=draft.sources[leaf],
                    tried=True,
                    matched=sum(draft.verdicts[node] == "accepted" for node in path),
                )
            )
    return found


def verdict_of(draft: protocol.DraftTree, path: Sequence[int]) -> protocol.Verdict:
    """Return the verdict on the node at the end of a path from the root; `untested` if the tree has no such node."""
    node = -1
    children = {
        (parent, token): i for i, (parent, token) in enumerate(zip(draft.parents, draft.token_ids, strict=True))
    }
    for token in path:
        if (node, token) not in children:
            return "untested"
        node = children[node, token]
    return draft.verdicts[node]


def _ordered(guesses: Sequence[protocol.Candidate], depth: int) -> list[protocol.Candidate]:
    """Order guesses that share their first `depth` tokens so that those with the same next token are together."""
    groups: dict[int | None, list[protocol.Candidate]] = {}
    for guess in guesses:
        groups.setdefault(guess.token_ids[depth] if depth < len(guess.token_ids) else None, []).append(guess)
    ended = groups.pop(None, [])
    return ended + [
        one for group in groups.values() for one in (group if len(group) == 1 else _ordered(group, depth + 1))
    ]


def _forks_again(shared: Sequence[int], depth: int) -> bool:
    """Return whether one of the following lines shares exactly `depth` tokens with those before it."""
    for later in shared:
        if later <= depth:
            return later == depth
    return False


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two guesses, in tokens."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
