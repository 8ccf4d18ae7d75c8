"""Conversations found by what is in them, narrower with every letter that is typed."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from ladechat.session.conversation_file import BETWEEN, Kept

CHARACTERS_AROUND = 24
"""Of a text, before and after what was searched for."""
NOWHERE = -1


class Place(NamedTuple):
    """Where something is written in a conversation.

    Attributes:
        message: the number of the question or answer, from 0, in the order in which they were said.
        text: what is written there, in its own capitals.
        excerpt: the same with what stands before and after it, in one line.
    """

    message: int
    text: str
    excerpt: str


class _Candidate(NamedTuple):
    """A conversation that may be found, and where the phrase stands in its text; `NOWHERE` where only its words do."""

    kept: Kept
    phrase_at: int


class ConversationSearch:
    """Finds conversations with a phrase, and after them those with all its words. Capitals make no difference.

    With "pool of n-grams" those that say it come first, and then those that say "n-grams" and "pool" anywhere. What is
    typed on can only leave fewer, so only those are looked through; and the phrase stands no earlier than it did.

    Args:
        conversations: in the order in which they are listed.
    """

    def __init__(self, conversations: Iterable[Kept]) -> None:
        self._all = [_Candidate(kept, 0) for kept in conversations]
        self._typed, self._left = "", self._all

    def find(self, typed: str) -> list[Kept]:
        """Return those that have it; all where nothing is typed."""
        phrase = _folded(typed)
        if not phrase.startswith(self._typed):
            self._left = self._all
        words = phrase.split()
        self._left = [
            _Candidate(one.kept, _phrase_at(one, phrase))
            for one in self._left
            if all(word in one.kept.folded for word in words)
        ]
        self._typed = phrase
        return [one.kept for one in sorted(self._left, key=lambda one: one.phrase_at == NOWHERE)]

    @staticmethod
    def place(kept: Kept, typed: str) -> Place | None:
        """Return where a conversation has the phrase first, or else the first word of it that is not in the title."""
        phrase, title = _folded(typed), kept.folded[: kept.folded.index(BETWEEN)]
        for wanted in (phrase, *phrase.split()):
            at = kept.folded.find(wanted, len(title)) if wanted and wanted not in title else NOWHERE
            if at != NOWHERE:
                return _place(kept, at, len(wanted))
        return None


def _folded(typed: str) -> str:
    return " ".join(typed.split()).casefold()


def _phrase_at(one: _Candidate, phrase: str) -> int:
    """Where a phrase stands that begins with the one before."""
    return one.phrase_at if one.phrase_at == NOWHERE else one.kept.folded.find(phrase, one.phrase_at)


def _place(kept: Kept, at: int, length: int) -> Place:
    """What stands at a place of the folded text, as it is written."""
    begins = kept.folded.rindex(BETWEEN, 0, at) + 1
    message = kept.folded.count(BETWEEN, 0, at) - 1
    written = kept.messages[message]
    ends = list(accumulate(len(character.casefold()) for character in written))  # "ß" becomes two
    start, last = (bisect_right(ends, place - begins) for place in (at, at + length - 1))
    around = written[max(start - CHARACTERS_AROUND, 0) : last + 1 + CHARACTERS_AROUND]
    return Place(message, written[start : last + 1], " ".join(around.split()))
