"""A kept conversation as a file: JSON lines, only ever appended, and how they are read (docs/conversations.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ladechat.files import read_file
from ladechat.protocol import MAX_LINE_BYTES, Exchange

SUFFIX = ".jsonl"
VERSION = 1
"""A reader leaves out files of a later version, and skips lines of kinds that it does not know."""
MOST_BYTES = MAX_LINE_BYTES
"""Of a file: a conversation is sent to the engine in one line."""
TITLE_CHARACTERS = 80
COPY = " (copy)"
"""Ends the title of a copy."""
BETWEEN = "\0"
"""Stands between two messages that are searched: nobody types it, so nothing is found across them."""
_SPACES = str.maketrans("\n\r\t", "   ")


class Line(Struct, frozen=True, kw_only=True, tag_field="line"):
    """Base of the lines of a file."""


class Begun(Line, frozen=True, tag="conversation"):
    """The first line."""

    version: int = VERSION


class Answered(Line, frozen=True, tag="exchange"):
    """A question was answered. `when` is a time in ISO 8601."""

    when: str
    exchange: Exchange


class Continued(Line, frozen=True, tag="continued"):
    """What the last exchange before this line is now: its answer went on, or it was replaced."""

    when: str
    exchange: Exchange


class Removed(Line, frozen=True, tag="removed"):
    """The last exchange before this line was taken out of the conversation. Earlier versions wrote it before an
    exchange that replaced another.
    """


class Instructed(Line, frozen=True, tag="system"):
    """How the model should behave from here on, as the user said it; "": nothing is said."""

    text: str


class Renamed(Line, frozen=True, tag="title"):
    """The user gave the conversation a title."""

    title: str


@dataclass(frozen=True)
class Kept:
    """A kept conversation as it was read.

    Attributes:
        path: its file.
        answers: what was asked and answered, oldest first; at least one.
        given_title: the one that the user gave; "" if there is none.
        system: the system prompt; None where nothing was ever said about one.
    """

    path: Path
    answers: tuple[Answered, ...]
    given_title: str = ""
    system: str | None = None

    @property
    def exchanges(self) -> list[Exchange]:
        """The questions and answers, oldest first."""
        return [answer.exchange for answer in self.answers]

    @property
    def title(self) -> str:
        """The given one, or else the beginning of the first question."""
        return self.given_title or shortened(self.answers[0].exchange.question)

    @property
    def model(self) -> str:
        """The model that answered last."""
        return self.answers[-1].exchange.model

    @cached_property
    def when(self) -> datetime:
        """When it was answered last, in this place's time."""
        try:
            return datetime.fromisoformat(self.answers[-1].when).astimezone()
        except (ValueError, OverflowError):  # written by another program
            return datetime.fromtimestamp(0).astimezone()

    @property
    def messages(self) -> list[str]:
        """Questions and answers in turn, oldest first."""
        return [text for exchange in self.exchanges for text in (exchange.question, exchange.answer)]

    @cached_property
    def folded(self) -> str:
        """The title and all messages with `BETWEEN` after each but the last, without capitals and line breaks: what a
        search goes through.
        """
        texts = (text.replace(BETWEEN, " ") for text in (self.title, *self.messages))
        return BETWEEN.join(texts).translate(_SPACES).casefold()


def shortened(text: str) -> str:
    """A text as a title: one line, and not a long one."""
    line = " ".join(text[: 10 * TITLE_CHARACTERS].split())
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"


def title_of_copy(title: str) -> str:
    """The title of a copy of a conversation: the same, and that it is a copy."""
    plain = title.removesuffix(COPY)
    room = TITLE_CHARACTERS - len(COPY)
    return (plain if len(plain) <= room else plain[: room - 1] + "…") + COPY


_decode_first = msgspec.json.Decoder(Begun).decode
_decode_line = msgspec.json.Decoder(Answered | Continued | Removed | Renamed | Instructed).decode


def read(path: Path) -> Kept | None:
    """Read a file; None if it is no conversation, or one without an answer.

    A line that cannot be read, as a last one that was cut off, is left out.

    Raises:
        OSError: it cannot be read.
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
    return Kept(path, tuple(answers), title, system) if answers else None


def _with_system(exchange: Exchange, system: str | None) -> Exchange:
    """An exchange with the system prompt that the lines before it say, where it has none of its own: files of earlier
    versions.
    """
    return exchange if exchange.system is not None or system is None else replace(exchange, system=system)


def _decoded(lines: list[bytes]) -> Iterator[Answered | Continued | Removed | Renamed | Instructed]:
    for line in lines:
        try:
            yield _decode_line(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
