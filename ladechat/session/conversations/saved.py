"""Saved conversations: append-only files of JSON lines, and how they are read (docs/conversations.md)."""

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
from ladechat.protocol.values import Count
from ladechat.session.conversations.tree import ROOT, ExchangeTree

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


class FileLine(Struct, frozen=True, kw_only=True, tag_field="line"):
    """Base of the lines of a file."""


class Begun(FileLine, frozen=True, tag="conversation"):
    """The first line."""

    version: int = VERSION


class Answered(FileLine, frozen=True, tag="exchange"):
    """A question was answered. Exchanges are numbered from 0. `when` is a time in ISO 8601, `after` the number of the
    exchange before it, -1 for none; None: the last one that is shown.
    """

    when: str
    exchange: Exchange
    after: int | None = None


class Continued(FileLine, frozen=True, tag="continued"):
    """An answer was continued: the new state of its exchange. `number` is that of the exchange; None: the last one
    shown. Earlier versions wrote this line also for an exchange that replaced another.
    """

    when: str
    exchange: Exchange
    number: int | None = None


class Removed(FileLine, frozen=True, tag="removed"):
    """The next exchange replaces the last one, as files of earlier versions say it. This version writes the line for
    those, and goes by `Answered.after` and `Branch` itself.
    """


class Branch(FileLine, frozen=True, tag="branch"):
    """The exchange of this number is shown, with the latest after it, or, if not `shown`, is deleted."""

    number: int
    shown: bool = True


class Lost(FileLine, frozen=True, tag="lost"):
    """An exchange that could not be read had this number: those after it keep theirs."""


class Instructed(FileLine, frozen=True, tag="system"):
    """The system prompt from this line on, as the user entered it; "" if there is none."""

    text: str


class Renamed(FileLine, frozen=True, tag="title"):
    """The user gave the conversation a title."""

    title: str


class Pinned(FileLine, frozen=True, tag="pin"):
    """The user pinned the conversation to the top of the list, or unpinned it."""

    pinned: bool


class Viewed(FileLine, frozen=True, tag="view"):
    """How the conversation was shown when it was left: with formatted answers or not, and with this row of this
    question or answer, from 0, at the top; None: with its end in view.
    """

    formatted: bool = False
    message: Count | None = None
    row: Count = 0


Changed = Answered | Continued | Removed | Branch | Lost | Renamed | Instructed | Pinned | Viewed
"""What a line after the first says."""


@dataclass(frozen=True)
class SavedConversation:
    """A saved conversation as it was read.

    Attributes:
        path: its file.
        lines: those after the first, as far as they can be read.
        tree: the exchanges, of which at least one is shown.
        given_title: the title that the user gave; "" if there is none.
        system: the system prompt; None if none was ever set.
        pinned: whether it stands before all others in the list.
        view: how it was left; None if that is not known.
        unread: the number of lines that cannot be read.
    """

    path: Path
    lines: tuple[Changed, ...]
    tree: ExchangeTree
    given_title: str = ""
    system: str | None = None
    pinned: bool = False
    view: Viewed | None = None
    unread: int = 0

    @property
    def exchanges(self) -> list[Exchange]:
        """The shown questions with their answers, oldest first."""
        return [self.tree.exchanges[one] for one in self.tree.path]

    @property
    def title(self) -> str:
        """The given title, or else the start of the first question."""
        return self.given_title or title_of(self.tree.exchanges[self.tree.path[0]].question)

    @property
    def model(self) -> str:
        """The model of the last answer."""
        return self.tree.exchanges[self.tree.path[-1]].model

    @property
    def questions(self) -> int:
        """The number of questions."""
        return len(self.tree.path)

    @cached_property
    def when(self) -> datetime:
        """The time of the last answer, also if another variant is shown, in the local time zone."""
        try:
            return datetime.fromtimestamp(datetime.fromisoformat(self.tree.times[-1]).timestamp()).astimezone()
        except (ValueError, OverflowError, OSError):  # written by another program
            return datetime.fromtimestamp(0).astimezone()

    @property
    def searched(self) -> list[int]:
        """The exchanges that are searched: those that are shown, then those of other variants, each oldest first."""
        return [*self.tree.path, *self.tree.hidden]

    @property
    def messages(self) -> list[str]:
        """The searched questions and answers alternately."""
        searched = map(self.tree.exchanges.__getitem__, self.searched)
        return [text for exchange in searched for text in (exchange.question, exchange.answer)]

    @cached_property
    def folded(self) -> str:
        """The searched text: title and messages, separated by `BETWEEN`, case-folded and without line breaks."""
        texts = (text.replace(BETWEEN, " ") for text in (self.title, *self.messages))
        return BETWEEN.join(texts).replace("\n", " ").replace("\r", " ").replace("\t", " ").casefold()


def shortened(text: str) -> str:
    """Return a text shortened to a title of one line."""
    line = " ".join(text[: 10 * TITLE_CHARACTERS].split())
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"


def title_of(question: str) -> str:
    """Return the title of a conversation that begins with a question: its first paragraph, without attached files."""
    return shortened(question.strip().partition("\n\n")[0])


def title_of_copy(title: str) -> str:
    """Return the title of a copy of a conversation: the same title, marked as a copy."""
    plain = title.removesuffix(COPY)
    room = TITLE_CHARACTERS - len(COPY)
    return (plain if len(plain) <= room else plain[: room - 1] + "…") + COPY


_decode_first = msgspec.json.Decoder(Begun).decode
_decode_line = msgspec.json.Decoder(Changed).decode

EXCHANGE = b'{"line":"exchange"'
"""The beginning of a line with an exchange."""


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
    tree, end = ExchangeTree(), ROOT  # the exchange after which the next one stands
    lost = dict[int, int]()  # of each exchange that cannot be read, the one before it
    title, system, pinned, view = "", None, False, None
    changes = tuple(_decoded(lines[1:]))
    for line in changes:
        match line:
            case Answered():
                after = None if line.after is None else lost.get(line.after, line.after)
                end = after if after in tree.parents or after == ROOT else end
                end = tree.add(_with_system(line.exchange, system), end, line.when)
                view = _at_end(view)
            case Continued() if end != ROOT or line.number in lost:
                if line.number in lost:  # the new state has all that was lost
                    tree.parents[line.number] = lost.pop(line.number)
                end = line.number if line.number in tree.parents else end
                exchange = _with_system(line.exchange, tree.exchanges[end].system)
                tree.exchanges[end], tree.times[end] = exchange, line.when
                view = _at_end(view)
            case Continued():  # the line with the exchange itself is damaged
                end = tree.add(_with_system(line.exchange, system), ROOT, line.when)
            case Removed():
                end = tree.parents.get(end, ROOT)
            case Branch() if line.number in (tree.parents if line.shown else tree.path):
                (tree.show if line.shown else tree.delete)(line.number)
                end = tree.path[-1]
            case Lost():
                lost[tree.skip()] = end
            case Renamed():
                title = shortened(line.title)
            case Instructed():
                system = line.text
            case Pinned():
                pinned = line.pinned
            case Viewed():
                view = line
    unread = sum(map(bool, lines[1:])) - len(changes) + len(lost)
    return SavedConversation(path, changes, tree, title, system, pinned, view, unread) if tree.path else None


def _with_system(exchange: Exchange, system: str | None) -> Exchange:
    """Return an exchange with the system prompt of the lines before if it has none: files of earlier versions."""
    return exchange if exchange.system is not None or system is None else replace(exchange, system=system)


def _at_end(view: Viewed | None) -> Viewed | None:
    """Return a view with the end in view: there is an answer that was not seen in it."""
    return None if view is None else replace(view, message=None, row=0)


def _decoded(lines: list[bytes]) -> Iterator[Changed]:
    for line in lines:
        try:
            yield _decode_line(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            if line.startswith(EXCHANGE) and line.endswith(b"}"):  # else it was broken off, and got no number
                yield Lost()
