"""Full-text search of conversations, narrowed with every letter that is typed."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from ladechat.session.conversation_file import BETWEEN, SavedConversation

CHARACTERS_AROUND = 24
"""The length of an excerpt before and after the match, in characters."""
NOWHERE = -1


class MatchPlace(NamedTuple):
    """The place of a match in a conversation.

    Attributes:
        message: the index of the question or answer, from 0, in the order of the conversation.
        text: the matching text, in its original case.
        excerpt: the match with the text before and after it, in one line.
    """

    message: int
    text: str
    excerpt: str


class _Candidate(NamedTuple):
    """A conversation that may match, and the phrase's index in its text; `NOWHERE` if only its words match."""

    conversation: SavedConversation
    phrase_at: int


class ConversationSearch:
    """Finds conversations with a phrase, and after them those with all its words, ignoring case.

    For "pool of n-grams", conversations with the phrase come first, then those with "n-grams" and "pool" anywhere. More
    typed letters can only narrow the matches, so only these are searched again, each from its last match on.

    Args:
        conversations: all conversations, in display order.
    """

    def __init__(self, conversations: Iterable[SavedConversation]) -> None:
        self._all = [_Candidate(conversation, 0) for conversation in conversations]
        self._typed, self._left = "", self._all

    def find(self, typed: str) -> list[SavedConversation]:
        """Return the matching conversations; all if nothing is typed."""
        phrase = _folded(typed)
        if not phrase.startswith(self._typed):
            self._left = self._all
        words = phrase.split()
        self._left = [
            _Candidate(one.conversation, _phrase_at(one, phrase))
            for one in self._left
            if all(word in one.conversation.folded for word in words)
        ]
        self._typed = phrase
        return [one.conversation for one in sorted(self._left, key=lambda one: one.phrase_at == NOWHERE)]

    @staticmethod
    def place(conversation: SavedConversation, typed: str) -> MatchPlace | None:
        """Return the first place of the phrase, or else of its first word that is not in the title, if any."""
        phrase, title = _folded(typed), conversation.folded[: conversation.folded.index(BETWEEN)]
        for wanted in (phrase, *phrase.split()):
            at = conversation.folded.find(wanted, len(title)) if wanted and wanted not in title else NOWHERE
            if at != NOWHERE:
                return _place(conversation, at, len(wanted))
        return None


def _folded(typed: str) -> str:
    return " ".join(typed.split()).casefold()


def _phrase_at(one: _Candidate, phrase: str) -> int:
    """Return the index of a phrase that starts with the previous phrase; `NOWHERE` if it does not occur."""
    return one.phrase_at if one.phrase_at == NOWHERE else one.conversation.folded.find(phrase, one.phrase_at)


def _place(conversation: SavedConversation, at: int, length: int) -> MatchPlace:
    """Return the place of a match in the folded text, with the original spelling."""
    begins = conversation.folded.rindex(BETWEEN, 0, at) + 1
    message = conversation.folded.count(BETWEEN, 0, at) - 1
    written = conversation.messages[message]
    ends = list(accumulate(len(character.casefold()) for character in written))  # "ß" folds to two
    start, last = (bisect_right(ends, place - begins) for place in (at, at + length - 1))
    around = written[max(start - CHARACTERS_AROUND, 0) : last + 1 + CHARACTERS_AROUND]
    return MatchPlace(message, written[start : last + 1], " ".join(around.split()))
