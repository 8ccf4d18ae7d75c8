"""Finding saved conversations: a list of them that can be searched, and the place of a match in one."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

from ladechat.session.conversations.saved import BETWEEN, SavedConversation

CHARACTERS_AROUND = 25
"""The most characters of an excerpt before and after the match."""


@dataclass(frozen=True)
class IndexedConversation:
    """A saved conversation as the index knows it; the attributes are those of `SavedConversation`."""

    path: Path
    title: str
    when: datetime
    model: str
    questions: int
    pinned: bool


Listed = SavedConversation | IndexedConversation
"""What a list shows."""


class Listing(Protocol):
    """All saved conversations, and their search. Matches of the whole phrase come before matches of all its words."""

    @property
    def all(self) -> Sequence[Listed]:
        """Pinned conversations first, then the others, each the latest first."""

    def find(self, typed: str) -> Sequence[Listed]:
        """Return the matching conversations; all if nothing is typed."""


def sort_key(conversation: Listed) -> tuple[bool, datetime, str]:
    """Return the key of a list's order, to be sorted in reverse."""
    return conversation.pinned, conversation.when, conversation.path.name


class ScannedConversations:
    """Finds conversations by reading all their texts, where there is no index.

    For "pool of n-grams", conversations with the phrase come first, then those with "n-grams" and "pool" anywhere.
    """

    def __init__(self, conversations: Iterable[SavedConversation]) -> None:
        self.all = sorted(conversations, key=sort_key, reverse=True)

    def find(self, typed: str) -> list[SavedConversation]:
        """Return the matching conversations; all if nothing is typed."""
        phrase = folded(typed)
        words = phrase.split()
        found = [one for one in self.all if all(word in one.folded for word in words)]
        return sorted(found, key=lambda one: phrase not in one.folded)


class MatchPlace(NamedTuple):
    """The place of a match in a conversation.

    Attributes:
        exchange: the number of the exchange in the conversation's tree.
        answer: whether it is in the answer, not in the question.
        shown: whether the exchange is shown, not another variant.
        text: the matching text, in its original case.
        excerpt: the match with the text before and after it, in one line.
    """

    exchange: int
    answer: bool
    shown: bool
    text: str
    excerpt: str


def place_of(conversation: SavedConversation, typed: str) -> MatchPlace | None:
    """Return the first place of the phrase, or else of its first word that is not in the title, if any. The start of a
    word comes before the middle of one.
    """
    text, phrase = conversation.folded, folded(typed)
    title = text[: text.index(BETWEEN)]
    for wanted in (phrase, *phrase.split()):
        if not wanted or wanted in title:
            continue
        if (at := _first(text, wanted, len(title))) >= 0:
            return _place(conversation, at, len(wanted))
    return None


def _first(text: str, wanted: str, start: int) -> int:
    """Return where a text is found first at the start of a word, or else anywhere; -1 if nowhere."""
    at = anywhere = text.find(wanted, start)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(wanted, at + 1)
    return at if at >= 0 else anywhere


def folded(typed: str) -> str:
    """Return what is searched for a typed text: case-folded, with single spaces."""
    return " ".join(typed.split()).casefold()


def _place(conversation: SavedConversation, at: int, length: int) -> MatchPlace:
    """Return the place of a match in the folded text, with the original spelling."""
    begins = conversation.folded.rindex(BETWEEN, 0, at) + 1
    message = conversation.folded.count(BETWEEN, 0, at) - 1
    written = conversation.messages[message]
    start, last = at - begins, at + length - 1 - begins
    if len(written.casefold()) > len(written):  # "ß" folds to two
        ends = list(accumulate(len(character.casefold()) for character in written))
        start, last = bisect_right(ends, start), bisect_right(ends, last)
    before, after = written[:start][-CHARACTERS_AROUND:], written[last + 1 :][:CHARACTERS_AROUND]
    if start > CHARACTERS_AROUND:
        before = before.partition(" ")[2] or before  # no halves of words
    if len(written) > last + 1 + CHARACTERS_AROUND:
        after = after.rpartition(" ")[0] or after
    found = written[start : last + 1]
    number = conversation.searched[message // 2]
    excerpt = " ".join((before + found + after).split())
    return MatchPlace(number, message % 2 == 1, number in conversation.tree.path, found, excerpt)
