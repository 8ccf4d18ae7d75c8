"""Styled text, wrapped at words, that grows at its end without being wrapped again from the start."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Literal, Protocol

import msgspec

from ladechat.widgets.cells import cell_len, cell_size, joins_left, printable

TAB = "    "
_WRITTEN = str.maketrans(
    {
        "\t": TAB,
        **dict.fromkeys("\u00a0\u1680\u202f\u205f", " "),
        **dict.fromkeys(map(chr, range(0x2000, 0x200B)), " "),
        "\u3000": "  ",
        # Hints for joining and breaking words and for the direction of a letter: they are invisible.
        **dict.fromkeys("\u00ad\u061c\u200b\u200c\u200e\u200f\u2060\ufeff", ""),
    }
)
"""Characters of ordinary writing that terminals need in another form. Characters that could hide or reorder text are
not among them."""


Markup = Literal[
    "mark", "heading", "strong", "emphasis", "strong_emphasis", "struck", "link", "code",
    "listing", "keyword", "string", "number", "name", "comment",
]  # fmt: skip
"""Kinds of formatted text. A `mark` was not written: a bullet, the frame of a listing."""


class Ink(msgspec.Struct, frozen=True, gc=False):
    """The role of a run of text, from which its style follows. Like `Line`, it is not tracked by the garbage collector,
    since a conversation has very many.

    Attributes:
        kind: "answer" is an answer whose steps are not known, "offer" a question that can be clicked.
        turn, step: of a token, the answer and the step that it belongs to; `step` of an arrow, how many variants on.
        tokens: number of tokens that the step emitted.
        token: the index of this one among them.
        own: whether it is the model's own next token, after accepted drafts.
    """

    kind: Literal["plain", "label", "user", "muted", "alert", "answer", "step", "marked", "offer"] | Markup
    turn: int = 0
    step: int = 0
    tokens: int = 0
    token: int = 0
    own: bool = False


PLAIN = Ink("plain")
UNKNOWN = Ink("answer")
SEPARATOR = ("·", Ink("muted"))
"""What is between the figures in a notice: it ends a line, and begins none."""

Run = tuple[str, Ink]
"""A text without line breaks, and its ink."""


class Origin(Protocol):
    """The source of a formatted line."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where the characters `start` to `end` of the line are in the raw text."""
        ...


class Line(msgspec.Struct, gc=False):
    """One line of the screen.

    Attributes:
        joint: the text between it and the next line: a line break, a space, or nothing.
        copied: the text that is copied instead of the line's own, if they differ.
        origin: the place in the raw text, for a line of formatted text.
    """

    runs: tuple[Run, ...] = ()
    joint: str = "\n"
    copied: str | None = None
    origin: Origin | None = None

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.runs)


class Flow:
    """Wraps text to `width` cells as it arrives.

    Lines are filled greedily, so those above the last can no longer change: an append wraps only the last line and the
    new text.
    """

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.lines: list[Line] = [Line()]

    def extend(self, texts: Iterable[tuple[str, Ink]]) -> int:
        """Append several texts; return the index of the first line that has changed."""
        first_changed = len(self.lines) - 1
        coming: list[Run] = []
        for text, ink in texts:
            for number, part in enumerate(safe(text).split("\n")):
                if number:
                    self._fill(coming)
                    coming = []
                    self.lines[-1].joint = "\n"
                    self.lines.append(Line())
                coming.append((part, ink))
        self._fill(coming)
        return first_changed

    def _fill(self, runs: list[Run]) -> None:
        if any(text for text, _ in runs):
            last = self.lines.pop()
            self.lines.extend(wrap([*last.runs, *runs], self.width))


def wrap(runs: Iterable[Run], width: int, *, words: bool = True) -> list[Line]:
    """Break text without line breaks into lines of at most `width` cells: between words if possible, or, with `words`
    False (a listing), wherever a line is full.
    """
    characters = _inked(runs)
    lines: list[Line] = []
    start = 0
    while True:
        end, following = _line_end(characters, start, width, words)
        gap = "".join(character for character, _ in characters[end:following])
        lines.append(Line(tuple(_as_runs(characters[start:end])), joint=gap))
        if following >= len(characters):
            if gap:  # a trailing space without room: the text to come begins on a new line
                lines.append(Line())
            lines[-1].joint = "\n"
            return lines
        start = following


def ink_at(line: Line, cell: int) -> Ink:
    """Return the ink of the text in a cell of a line."""
    for text, ink in line.runs:
        cell -= cell_len(text)
        if cell < 0:
            return ink
    return PLAIN


def safe(text: str) -> str:
    """Return `text` with unsafe characters replaced, line by line, for a terminal."""
    text = text.replace("\r\n", "\n").translate(_WRITTEN)
    # A mark at the start of a piece belongs to the character before it; the letter put in front stands for that one.
    return "\n".join(printable("x" + line)[1:] for line in text.split("\n"))


def safe_with_tabs(text: str) -> str:
    """Return `text` made safe for a file: as `safe`, but with tabs as tabs, which a Makefile needs."""
    return "\t".join(map(safe, text.split("\t")))


def _line_end(characters: list[tuple[str, Ink]], start: int, width: int, words: bool) -> tuple[int, int]:
    """Return the end of the line that begins at `start`, and the start of the next one."""
    cells = 0
    last_space = None
    for place in range(start, len(characters)):
        character = characters[place][0]
        if character == " " and words and characters[place + 1 : place + 2] != [SEPARATOR]:
            last_space = place
            if cells >= width:
                return place, place + 1
        size = cell_size(character)
        if cells + size > width and place > start:
            if last_space is not None and any(c != " " for c, _ in characters[start:last_space]):
                return last_space, last_space + 1
            head = place
            while head > start and joins_left(characters[head][0]):
                head -= 1
            return (head, head) if head > start else (place, place)  # a letter that fills the line is split
        cells += size
    return len(characters), len(characters)


def _inked(runs: Iterable[Run]) -> list[tuple[str, Ink]]:
    """Split runs into characters; a mark that one step put on a letter of another step has the ink of the letter."""
    characters: list[tuple[str, Ink]] = []
    for text, ink in runs:
        for character in text:
            characters.append((character, characters[-1][1] if characters and joins_left(character) else ink))
    return characters


def _as_runs(characters: list[tuple[str, Ink]]) -> Iterator[Run]:
    for ink, group in groupby(characters, key=itemgetter(1)):
        yield "".join(character for character, _ in group), ink
