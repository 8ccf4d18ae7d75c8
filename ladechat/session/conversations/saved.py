"""Saved conversations: append-only files of JSON lines, how they are read, and their search (docs/conversations.md)."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ladechat.files import read_file
from ladechat.protocol import MAX_LINE_BYTES, Exchange

SUFFIX = ".jsonl"
VERSION = 1
"""Files of a later version are not read, and lines of unknown kinds are skipped."""
MOST_BYTES = MAX_LINE_BYTES
"""The largest file that is read, in bytes: a conversation is sent to the engine in one line."""
TITLE_CHARACTERS = 80
COPY = " (copy)"
"""The end of the title of a copy."""
BETWEEN = "\0"
"""Separates two messages in the searched text: nobody types it, so no phrase is found across two messages."""
CHARACTERS_AROUND = 24
"""The length of an excerpt before and after the match, in characters."""
_SPACES = str.maketrans("\n\r\t", "   ")


class FileLine(Struct, frozen=True, kw_only=True, tag_field="line"):
    """Base of the lines of a file."""


class Begun(FileLine, frozen=True, tag="conversation"):
    """The first line."""

    version: int = VERSION


class Answered(FileLine, frozen=True, tag="exchange"):
    """A question was answered. `when` is a time in ISO 8601."""

    when: str
    exchange: Exchange


class Continued(FileLine, frozen=True, tag="continued"):
    """The new state of the last exchange before this line: its answer was continued, or it was replaced."""

    when: str
    exchange: Exchange


class Removed(FileLine, frozen=True, tag="removed"):
    """The last exchange before this line was removed from the conversation. Earlier versions wrote it before an
    exchange that replaced another.
    """


class Instructed(FileLine, frozen=True, tag="system"):
    """The system prompt from this line on, as the user entered it; "" if there is none."""

    text: str


class Renamed(FileLine, frozen=True, tag="title"):
    """The user gave the conversation a title."""

    title: str


@dataclass(frozen=True)
class SavedConversation:
    """A saved conversation as it was read.

    Attributes:
        path: its file.
        answers: the exchanges, oldest first; at least one.
        given_title: the title that the user gave; "" if there is none.
        system: the system prompt; None if none was ever set.
    """

    path: Path
    answers: tuple[Answered, ...]
    given_title: str = ""
    system: str | None = None

    @property
    def exchanges(self) -> list[Exchange]:
        """The questions with their answers, oldest first."""
        return [answer.exchange for answer in self.answers]

    @property
    def title(self) -> str:
        """The given title, or else the start of the first question."""
        return self.given_title or shortened(self.answers[0].exchange.question)

    @property
    def model(self) -> str:
        """The model of the last answer."""
        return self.answers[-1].exchange.model

    @cached_property
    def when(self) -> datetime:
        """The time of the last answer, in the local time zone."""
        try:
            return datetime.fromisoformat(self.answers[-1].when).astimezone()
        except (ValueError, OverflowError):  # written by another program
            return datetime.fromtimestamp(0).astimezone()

    @property
    def messages(self) -> list[str]:
        """Questions and answers alternately, oldest first."""
        return [text for exchange in self.exchanges for text in (exchange.question, exchange.answer)]

    @cached_property
    def folded(self) -> str:
        """The searched text: title and messages, separated by `BETWEEN`, case-folded and without line breaks."""
        texts = (text.replace(BETWEEN, " ") for text in (self.title, *self.messages))
        return BETWEEN.join(texts).translate(_SPACES).casefold()


def shortened(text: str) -> str:
    """Return a text shortened to a title of one line."""
    line = " ".join(text[: 10 * TITLE_CHARACTERS].split())
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"


def title_of_copy(title: str) -> str:
    """Return the title of a copy of a conversation: the same title, marked as a copy."""
    plain = title.removesuffix(COPY)
    room = TITLE_CHARACTERS - len(COPY)
    return (plain if len(plain) <= room else plain[: room - 1] + "…") + COPY


_decode_first = msgspec.json.Decoder(Begun).decode
_decode_line = msgspec.json.Decoder(Answered | Continued | Removed | Renamed | Instructed).decode


def read(path: Path) -> SavedConversation | None:
    """Read a file; return None if it is not a conversation, or has no answer.

    Lines that cannot be read, such as an incomplete last one, are skipped.

    Raises:
        OSError: the file cannot be read.
    """
    lines = read_file(path, MOST_BYTES).split(b"\n")
    try:
        if _decode_first(lines[0]).version > VERSION:
            return None
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    answers: list[Answered] = []
    title, system = "", None
    for line in _decoded(lines[1:]):
        match line:
            case Answered():
                answers.append(Answered(when=line.when, exchange=_with_system(line.exchange, system)))
            case Continued():
                before = answers[-1].exchange.system if answers else system
                answers[-1:] = [Answered(when=line.when, exchange=_with_system(line.exchange, before))]
            case Removed():
                del answers[-1:]
            case Renamed():
                title = shortened(line.title)
            case Instructed():
                system = line.text
    return SavedConversation(path, tuple(answers), title, system) if answers else None


def _with_system(exchange: Exchange, system: str | None) -> Exchange:
    """Return an exchange with the system prompt of the lines before if it has none: files of earlier versions."""
    return exchange if exchange.system is not None or system is None else replace(exchange, system=system)


def _decoded(lines: list[bytes]) -> Iterator[Answered | Continued | Removed | Renamed | Instructed]:
    for line in lines:
        try:
            yield _decode_line(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue


# --- search -----------------------------------------------------------------------------------------------------------


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


class ConversationSearch:
    """Finds conversations with a phrase, and after them those with all its words, ignoring case.

    For "pool of n-grams", conversations with the phrase come first, then those with "n-grams" and "pool" anywhere. More
    typed letters can only narrow the matches, so only these are searched again.

    Args:
        conversations: all conversations, in display order.
    """

    def __init__(self, conversations: Iterable[SavedConversation]) -> None:
        self._all = list(conversations)
        self._typed, self._left = "", self._all

    def find(self, typed: str) -> list[SavedConversation]:
        """Return the matching conversations; all if nothing is typed."""
        phrase = _folded(typed)
        if not phrase.startswith(self._typed):
            self._left = self._all
        words = phrase.split()
        self._left = [one for one in self._left if all(word in one.folded for word in words)]
        self._typed = phrase
        return sorted(self._left, key=lambda one: phrase not in one.folded)

    @staticmethod
    def place(conversation: SavedConversation, typed: str) -> MatchPlace | None:
        """Return the first place of the phrase, or else of its first word that is not in the title, if any."""
        phrase, title = _folded(typed), conversation.folded[: conversation.folded.index(BETWEEN)]
        for wanted in (phrase, *phrase.split()):
            at = conversation.folded.find(wanted, len(title)) if wanted and wanted not in title else -1
            if at >= 0:
                return _place(conversation, at, len(wanted))
        return None


def _folded(typed: str) -> str:
    return " ".join(typed.split()).casefold()


def _place(conversation: SavedConversation, at: int, length: int) -> MatchPlace:
    """Return the place of a match in the folded text, with the original spelling."""
    begins = conversation.folded.rindex(BETWEEN, 0, at) + 1
    message = conversation.folded.count(BETWEEN, 0, at) - 1
    written = conversation.messages[message]
    ends = list(accumulate(len(character.casefold()) for character in written))  # "ß" folds to two
    start, last = (bisect_right(ends, place - begins) for place in (at, at + length - 1))
    around = written[max(start - CHARACTERS_AROUND, 0) : last + 1 + CHARACTERS_AROUND]
    return MatchPlace(message, written[start : last + 1], " ".join(around.split()))
