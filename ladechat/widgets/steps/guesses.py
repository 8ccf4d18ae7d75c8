"""The guesses of one pass: chains of drafts after the last token, numbered alike in every panel."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ladechat import protocol
from ladechat.palette import VERDICT_MARKS, VERDICT_WORDS
from ladechat.widgets.formatting import counted

WINDOW = "window"
"""The source name of drafts from the Jacobi window."""


class GuessLine(NamedTuple):
    """One guess, on a line of its own.

    Attributes:
        guess: the guess.
        shared: number of its first tokens that are in the lines above already.
        forks: for each number of shared tokens up to `shared`, whether a later line forks off there too.
        number: its number in the pass, from 1; 0 for a guess that had no room.
    """

    guess: protocol.Candidate
    shared: int
    forks: tuple[bool, ...]
    number: int


def guesses_of(step: protocol.Step) -> list[protocol.Candidate]:
    """Return the guesses of a pass: the pool's, then the other branches of its draft tree.

    Branches of the Jacobi window are none of them where there is a pool: they are the window's cells.
    """
    known = [] if step.pool is None else step.pool.candidates
    return [*known, *other_guesses(step)]


def other_guesses(step: protocol.Step) -> list[protocol.Candidate]:
    """Return the guesses that are not the pool's."""
    if step.draft is None:
        return []
    others = branches(step.draft, [] if step.pool is None else step.pool.candidates)
    return [one for one in others if step.pool is None or step.window is None or one.source != WINDOW]


def in_lines(guesses: Iterable[protocol.Candidate]) -> list[GuessLine]:
    """Return guesses as lines, those with a common prefix below each other, prefixes in order of first appearance.

    Guesses that were not tried are no part of the tree, and come last.
    """
    guesses = list(guesses)
    tried = _ordered([guess for guess in guesses if guess.tried], 0)
    ids = [guess.token_ids for guess in tried]
    shared = [0, *(min(_common(one, other), len(other) - 1) for one, other in pairwise(ids))]
    lines = [
        GuessLine(guess, own, tuple(_forks_again(shared[index + 1 :], depth) for depth in range(own + 1)), index + 1)
        for index, (guess, own) in enumerate(zip(tried, shared, strict=False))
    ]
    return [*lines, *(GuessLine(guess, 0, (False,), 0) for guess in guesses if not guess.tried)]


def first_lines(guesses: Sequence[protocol.Candidate], most: int, *, best_first: bool = False) -> list[GuessLine]:
    """Return at most `most` lines. If not all fit, the guesses with the most accepted drafts are among them.

    The lines keep their order; with `best_first` those guesses come first.
    """
    lines = in_lines(guesses)
    if len(lines) <= most:
        return lines
    numbers = {tuple(line.guess.token_ids): line.number for line in lines if line.number}
    best = sorted(lines, key=lambda line: -line.guess.matched)[: max(most, 0)]
    shown = in_lines(line.guess for line in (best if best_first else sorted(best, key=lines.index)))
    return [line._replace(number=line.number and numbers[tuple(line.guess.token_ids)]) for line in shown]


def numbers_of(step: protocol.Step) -> dict[int, int]:
    """Return each node of the draft tree that is in a guess, with the number of the first guess that it is in."""
    if step.draft is None:
        return {}
    children, found = children_of(step.draft), dict[int, int]()
    for line in in_lines(guesses_of(step)):
        node: int | None = -1
        for token in line.guess.token_ids if line.number else ():
            node = None if node is None else children.get((node, token))
            if node is not None:
                found.setdefault(node, line.number)
    return found


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


def verdicts_of(draft: protocol.DraftTree | None, guess: protocol.Candidate) -> list[protocol.Verdict]:
    """Return the verdict on each token of a guess that was tried: accepted ones, then that of the draft tree on the
    next, and `untested` for the others.
    """
    after: list[protocol.Verdict] = ["untested"] * (len(guess.token_ids) - guess.matched)
    if after and draft is not None:
        after[0] = verdict_of(draft, guess.token_ids[: guess.matched + 1])
    matched: list[protocol.Verdict] = ["accepted"] * guess.matched
    return matched + after


def verdict_of(draft: protocol.DraftTree, path: Sequence[int]) -> protocol.Verdict:
    """Return the verdict on the node at the end of a path from the root; `untested` if the tree has no such node."""
    node = -1
    children = children_of(draft)
    for token in path:
        if (node, token) not in children:
            return "untested"
        node = children[node, token]
    return draft.verdicts[node]


def verdicts_at(draft: protocol.DraftTree | None, tokens: Sequence[int]) -> list[protocol.Verdict | None]:
    """Return the verdicts on these tokens, one for each place after the last token; None where one was not drafted. A
    token may be drafted for its place in several branches: it is accepted if it is in one of them, else wrong if it is.
    """
    depths: list[int] = []
    found: list[protocol.Verdict | None] = [None] * len(tokens)
    ranks: dict[protocol.Verdict | None, int] = {None: -1, "untested": 0, "rejected": 1, "accepted": 2}
    nodes = zip(draft.parents, draft.token_ids, draft.verdicts, strict=True) if draft is not None else ()
    for parent, token, verdict in nodes:
        depth = depths[parent] + 1 if 0 <= parent < len(depths) else 0
        depths.append(depth)
        if depth < len(tokens) and tokens[depth] == token and ranks[verdict] > ranks[found[depth]]:
            found[depth] = verdict
    return found


def children_of(draft: protocol.DraftTree) -> dict[tuple[int, int], int]:
    """Return each node by its parent and its token."""
    return {(parent, token): i for i, (parent, token) in enumerate(zip(draft.parents, draft.token_ids, strict=True))}


def counts(verdicts: Iterable[protocol.Verdict]) -> tuple[str, ...]:
    """Return how many drafts got each verdict, in versions from long to short, such as ``3 drafts: 1 accepted ✓, 2
    wrong ✗`` and ``3 drafts: 1✓ 2✗``.
    """
    found = Counter[str](verdicts)
    kinds = [kind for kind in VERDICT_WORDS if found[kind]]
    if not kinds:
        return ("no drafts",)
    drafts = counted(found.total(), "draft")
    words = [f"{found[kind]} {VERDICT_WORDS[kind]}" for kind in kinds]
    marked = [f"{text} {VERDICT_MARKS[kind]}" for text, kind in zip(words, kinds, strict=True)]
    marks = " ".join(f"{found[kind]}{VERDICT_MARKS[kind]}" for kind in kinds)
    return (
        f"{drafts}: {', '.join(marked)}",
        f"{drafts}: {' '.join(marked)}",
        f"{drafts}: {', '.join(words)}",
        ", ".join(words),
        f"{drafts}: {marks}",
    )


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
    differing = (place for place, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs)
    return next(differing, min(len(one), len(other)))
