"""Suffix matching: what followed the longest earlier match of the text's end is the guess, and so are its rivals.

After Hu et al. 2024 (SAM decoding, arXiv 2411.10666) and Oliaro et al. 2024 (SuffixDecoding, arXiv 2411.04975). Matches
are found as LZ77 compressors find theirs: a table of pairs of tokens, each with a chain of the places where it stood.
"""

from collections.abc import Iterator, Mapping, Sequence

from ladechat.decoder.drafters.drafter import EARLIER, ROOT, Drafter, Node, Proposal, Room

SOURCE = "suffix"
"""Of continuations in the current text."""
BOUNDARY = -1
"""Stands between two texts: it equals no token, so no match crosses it."""
NOWHERE = 0
"""The end of a chain: nothing stands before place 0, which is a boundary."""

CAPACITY = 1 << 16
"""Tokens remembered: prompts and answers, the oldest half forgotten where they become more."""
SEARCHED = 48
"""Earlier places of the last two tokens that are looked at, the latest first."""
LONGEST_MATCH = 16
BRANCHES = 4
"""Different next tokens that are followed."""
CHANCES = ((2, 0.5), (4, 0.6), (6, 0.8), (LONGEST_MATCH, 0.85))
"""(most, chance): how often a continuation is right after a match of up to `most` tokens (SmolLM2-135M, Spec-Bench)."""


class SuffixDrafter(Drafter):
    """Proposes continuations of the longest matches in prompt, emitted text and earlier texts.

    After ``the cat sat. A dog; the cat`` it proposes ``sat . A``, from a match of two tokens. A match grows with each
    token that it foresees, and longer matches are right more often; so a draft's kind is the length it has by then.

    Args:
        nodes: the most drafted tokens in a pass.
        capacity: the most tokens remembered.
    """

    def __init__(self, nodes: int = 8, capacity: int = CAPACITY) -> None:
        self.nodes, self._capacity = nodes, capacity
        self._known: list[int] = [BOUNDARY]
        """All texts in a row, the current one last."""
        self._previous: list[int] = [NOWHERE]
        """For each place, the one before it where the same two tokens ended."""
        self._latest: dict[tuple[int, int], int] = {}
        """For two tokens in a row, the latest place where they ended."""
        self._text: Sequence[int] = ()
        self._start = 1
        """The place in `_known` of the current text's first token; below 1 once that has been forgotten."""

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Take the most drafted tokens from `nodes`."""
        self.nodes = parameters.get("nodes", self.nodes)

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        """Go on with the text known last if this one begins with it, as in a conversation; else begin another."""
        self._learn()  # the end of the last text, behind its last proposal
        self._text = text
        seen, forgotten = len(self._known) - self._start, max(0, 1 - self._start)
        if self._known[max(1, self._start) :] != list(text[forgotten:seen]):
            self._append(BOUNDARY)
            self._start = len(self._known)
        self._learn()

    def propose(self, room: Room) -> Proposal:
        self._learn()
        depth = min(self.nodes, room.depth)
        nodes: list[Node] = []
        branches: set[int] = set()
        for place, length in self._matches():
            if len(nodes) >= self.nodes or len(branches) == BRANCHES:
                break
            token = self._known[place]
            if token in branches or depth < 1:
                continue
            branches.add(token)
            # The likeliest branch is followed to its end, as far as its match is long; rivals are worth less.
            longest = min(depth, 2 * length if branches == {token} else length, self.nodes - len(nodes))
            nodes += self._continuation(place, length, longest, len(nodes))
        return Proposal(nodes)

    def _continuation(self, place: int, length: int, longest: int, first: int) -> Iterator[Node]:
        """What follows a match of `length` tokens that ends before `place`, up to the end of that text."""
        source = SOURCE if place >= self._start else EARLIER
        for offset in range(longest):
            if place + offset >= len(self._known) or self._known[place + offset] == BOUNDARY:
                return
            step, chance = next(
                (i, c) for i, (most, c) in enumerate(CHANCES) if most >= min(length + offset, LONGEST_MATCH)
            )
            parent = first + offset - 1 if offset else ROOT
            yield Node(parent, self._known[place + offset], source, (SOURCE, step), chance)

    def _matches(self) -> list[tuple[int, int]]:
        """Places after earlier occurrences of the text's end with the length of each match, the longest first.

        Of equally long ones the latest comes first: what was said last is likelier to be said again.
        """
        known, end = self._known, len(self._known) - 1
        found: list[tuple[int, int]] = []
        place = self._previous[end]
        while place != NOWHERE and len(found) < SEARCHED:
            length = 2
            while length < LONGEST_MATCH and known[place - length] == known[end - length] != BOUNDARY:
                length += 1
            if place < end and known[place + 1] != BOUNDARY:
                found.append((place + 1, length))
            place = self._previous[place]
        found.sort(key=lambda match: -match[1])
        return found

    def _learn(self) -> None:
        """Take in the tokens of the text that are new."""
        for token in self._text[len(self._known) - self._start :]:
            self._append(token)
        if len(self._known) > self._capacity:
            self._forget_half()

    def _append(self, token: int) -> None:
        pair, place = (self._known[-1], token), len(self._known)
        self._known.append(token)
        self._previous.append(self._latest.get(pair, NOWHERE))
        if BOUNDARY not in pair:
            self._latest[pair] = place

    def _forget_half(self) -> None:
        """Begin anew with the newer half of what is known; of a text longer than that, with its end."""
        kept = self._known[-(self._capacity // 2) :]
        self._start -= len(self._known) - len(kept) - 1
        self._known, self._previous, self._latest = [BOUNDARY], [NOWHERE], {}
        for token in kept:
            self._append(token)
