"""Suffix matching: guesses what followed the longest earlier matches of the text's end.

After Hu et al. 2024 (SAM decoding, arXiv 2411.10666) and Oliaro et al. 2024 (SuffixDecoding, arXiv 2411.04975). Matches
are found as in LZ77 compressors: a table of pairs of tokens, each with a chain of its earlier places.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ladechat.decoder.common_prefix import common_prefix
from ladechat.decoder.drafters.drafter import EARLIER, ROOT, BoundedDrafter, Node, Proposal, Room
from ladechat.decoder.drafters.places import NOWHERE, Places

SOURCE = "suffix"
"""The source of continuations found in the current text."""
BOUNDARY = -1
"""Separates two texts: it equals no token, so no match crosses it."""

CAPACITY = 1 << 16
"""The most tokens of prompts and answers stored; beyond it, the older half is dropped."""
SEARCHED = 48
"""The most earlier places of the last two tokens that are searched, the latest first."""
LONGEST_MATCH = 16
MOST_NODES = 64
READ_AGAIN = LONGEST_MATCH + MOST_NODES
"""Tokens before a change that are read again, so that a draft copied from there continues as the text does."""
BRANCHES = 4
"""The most different next tokens that are followed."""
CHANCES = ((2, 0.5), (4, 0.6), (6, 0.8), (LONGEST_MATCH, 0.85))
"""(most, chance): how often a continuation is right after a match of up to `most` tokens (SmolLM2-135M, Spec-Bench)."""


class _TextPiece(NamedTuple):
    """A part of the current text within the stored tokens.

    Attributes:
        begins: the index in the text of its first token.
        places: the indices of its tokens in the stored ones.
    """

    begins: int
    places: range

    def up_to(self, token: int) -> "_TextPiece":
        """Return the part of it before the token with this index in the text."""
        return self._replace(places=self.places[: max(0, token - self.begins)])


class SuffixDrafter(BoundedDrafter):
    """Proposes continuations of the longest matches in prompt, emitted text and earlier texts.

    After ``the cat sat. A dog; the cat`` it proposes ``sat . A``, from a match of two tokens. A match grows with each
    token that it predicts, and longer matches are right more often; so a draft's kind is the match length at its depth.

    A text that begins like the one before (a conversation that was continued, cut or edited) is read from `READ_AGAIN`
    tokens before the first difference. The proposals are those of a drafter that has read both texts in full, as long
    as the last two tokens have at most `SEARCHED` earlier places. It only forgets later.

    Args:
        nodes: the most drafted tokens in a pass.
        capacity: the most tokens stored.
        texts: earlier texts of the model, the latest last.
    """

    free = True

    def __init__(self, nodes: int = 8, capacity: int = CAPACITY, texts: Iterable[Sequence[int]] = ()) -> None:
        self.nodes, self._capacity = nodes, capacity
        self._known: list[int] = [BOUNDARY, *(token for text in texts for token in (*text, BOUNDARY))]
        """The stored tokens: all texts in a row, the current one last."""
        self._pairs = Places(2)
        self._text: Sequence[int] = ()
        self._read = 0
        """How many tokens of the current text are stored."""
        self._pieces: list[_TextPiece] = []
        """The pieces of the current text, in its order, the last one at the end of `_known`."""

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        """Start a run, reusing the common prefix with the text read last."""
        self._learn()  # the end of the last text, after its last proposal
        same = common_prefix(self._text, text)
        self._text = text
        if same < self._read or not self._read:
            self._begin_piece(same)
        self._learn()

    def _begin_piece(self, same: int) -> None:
        """Begin a piece shortly before the token in which the text differs from the one read last."""
        whole = bool(self._pieces) and self._pieces[0].begins == 0
        self._read = max(0, same - READ_AGAIN) if whole else 0
        # The tokens that are read again are in two pieces: a match that ends soon after their beginning has its full
        # length only in the earlier one.
        remaining = (piece.up_to(self._read and self._read + LONGEST_MATCH) for piece in self._pieces)
        self._pieces = [piece for piece in remaining if piece.places]
        self._known.append(BOUNDARY)
        self._pieces.append(_TextPiece(self._read, range(len(self._known), len(self._known))))

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
            # The most likely branch is followed for up to twice the length of its match; rivals are worth less.
            longest = min(depth, 2 * length if branches == {token} else length, self.nodes - len(nodes))
            nodes += self._continuation(place, length, longest, len(nodes))
        return Proposal(nodes)

    def _continuation(self, place: int, length: int, longest: int, first: int) -> Iterator[Node]:
        """Yield the tokens after a match of `length` tokens that ends before `place`, up to the end of that text."""
        source = SOURCE if self._is_current(place) else EARLIER
        for offset in range(longest):
            if place + offset >= len(self._known) or self._known[place + offset] == BOUNDARY:
                return
            step, chance = next(
                (i, c) for i, (most, c) in enumerate(CHANCES) if most >= min(length + offset, LONGEST_MATCH)
            )
            parent = first + offset - 1 if offset else ROOT
            yield Node(parent, self._known[place + offset], source, (SOURCE, step), chance)

    def _is_current(self, place: int) -> bool:
        return any(place in piece.places for piece in self._pieces)

    def _matches(self) -> list[tuple[int, int]]:
        """Return the places after earlier occurrences of the text's end with the length of each match, longest first.

        Of equally long ones those in the current text come first, then the latest: recent text is likelier to be
        repeated.
        """
        known, end, before = self._known, len(self._known), self._pairs.before
        found: list[tuple[int, int]] = []
        if BOUNDARY in known[-2:]:
            return found
        place = before[end]
        while place != NOWHERE and len(found) < SEARCHED:
            length = 2
            while length < LONGEST_MATCH and known[place - 1 - length] == known[end - 1 - length] != BOUNDARY:
                length += 1
            if known[place] != BOUNDARY:
                found.append((place, length))
            place = before[place]
        found.sort(key=lambda match: (-match[1], not self._is_current(match[0])))
        return found

    def _learn(self) -> None:
        """Store the new tokens of the text."""
        new = self._text[self._read :]
        if new:
            self._known += new
            self._read += len(new)
            begins, places = self._pieces[-1]
            self._pieces[-1] = _TextPiece(begins, range(places.start, len(self._known)))
            if len(self._known) > self._capacity:
                self._forget_half()
        self._pairs.read(self._known)

    def _forget_half(self) -> None:
        """Drop all but the newest tokens, half of the capacity."""
        remaining = self._known[-(self._capacity // 2) :]
        gone = len(self._known) - len(remaining) - 1
        self._known, self._pairs = [BOUNDARY, *remaining], Places(2)
        left = (
            _TextPiece(begins + max(0, gone + 1 - places.start), range(max(1, places.start - gone), places.stop - gone))
            for begins, places in self._pieces
        )
        self._pieces = [piece for piece in left if piece.places]
