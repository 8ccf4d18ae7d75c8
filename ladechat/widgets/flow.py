"""Text in several inks, wrapped at words, growing at its end without being wrapped again from the start."""

from collections.abc import Iterable
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
        # Hints for joining and breaking words and for the direction of a letter: nothing is to be seen of them.
        **dict.fromkeys("\u00ad\u061c\u200b\u200c\u200e\u200f\u2060\ufeff", ""),
    }
)
"""What is part of ordinary writing, as a terminal shows it. What could hide or turn text around is not among it."""


Markup = Literal[
    "mark",
    "heading",
    "strong",
    "emphasis",
    "strong_emphasis",
    "struck",
    "link",
    "code",
    "listing",
    "keyword",
    "string",
    "number",
    "name",
    "comment",
]
"""What formatted text is made of. A `mark` is not part of what was written: a bullet, the frame of a listing."""


class Ink(msgspec.Struct, frozen=True, gc=False):
    """What a stretch of text is. Like a line it is not looked through for garbage: a conversation has very many.

    Attributes:
        kind: "answer" is an answer whose steps are not known.
        turn, step: of a token, the answer and the step that it belongs to.
        tokens: how many tokens the step yielded.
        token: which of them this is.
        own: whether it is the model's own next token, after drafts that were accepted.
    """

    kind: Literal["plain", "label", "user", "muted", "alert", "answer", "step"] | Markup
    turn: int = 0
    step: int = 0
    tokens: int = 0
    token: int = 0
    own: bool = False


PLAIN = Ink("plain")
UNKNOWN = Ink("answer")

Run = tuple[str, Ink]
"""A text without line breaks, and its ink."""


class Origin(Protocol):
    """Where a formatted line comes from."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters `start` to `end` of the line stand in the text as it was written."""
        ...


class Line(msgspec.Struct, gc=False):
    """One line of the screen.

    Attributes:
        joint: what stood between it and the next: a line break, or a space, or nothing.
        copied: what is copied in its place, where that is not its text.
        origin: of a line that shows a text in another form than it was written in.
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

    A line above the last can no longer change, because lines are filled greedily; so an append wraps the last line and
    the new text, and nothing else.
    """

    def __init__(self, width: int) -> None:
        self.width = max(width, 1)
        self.lines: list[Line] = [Line()]

    def append(self, text: str, ink: Ink) -> int:
        """Add text at the end; the index of the first line that is not as it was."""
        return self.extend([(text, ink)])

    def extend(self, texts: Iterable[tuple[str, Ink]]) -> int:
        """Add texts at the end, in one go; the index of the first line that is not as it was."""
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
        """Add runs to the last line, and wrap it."""
        if any(text for text, _ in runs):
            last = self.lines.pop()
            self.lines.extend(wrap([*last.runs, *runs], self.width))


def wrap(runs: Iterable[Run], width: int, *, words: bool = True) -> list[Line]:
    """Break text without line breaks into lines of at most `width` cells: between words where there are any, or, for a
    listing, wherever a line is full.
    """
    characters = _inked(runs)
    lines: list[Line] = []
    start = 0
    while True:
        end, following = _line_end(characters, start, width, words)
        gap = "".join(character for character, _ in characters[end:following])
        lines.append(Line(tuple(_as_runs(characters[start:end])), joint=gap))
        if following >= len(characters):
            if gap:  # a space that has no room: it stands between this line and what will come
                lines.append(Line())
            lines[-1].joint = "\n"
            return lines
        start = following


def ink_at(line: Line, cell: int) -> Ink:
    """The ink of what stands in a cell of a line."""
    for text, ink in line.runs:
        cell -= cell_len(text)
        if cell < 0:
            return ink
    return PLAIN


def safe(text: str) -> str:
    """`text` as a terminal may be given it, line by line."""
    text = text.replace("\r\n", "\n").translate(_WRITTEN)
    # A mark at the head of a piece belongs to the character before, which the leading letter stands for.
    return "\n".join(printable("x" + line)[1:] for line in text.split("\n"))


def safe_with_tabs(text: str) -> str:
    """`text` in the same way for a file, where a tab is a tab: in a Makefile spaces are none."""
    return "\t".join(map(safe, text.split("\t")))


def _line_end(characters: list[tuple[str, Ink]], start: int, width: int, words: bool) -> tuple[int, int]:
    """Where the line that begins at `start` ends, and where the next one begins."""
    cells = 0
    last_space = None
    for place in range(start, len(characters)):
        character = characters[place][0]
        if character == " " and words:
            last_space = place
            if cells >= width:
                return place, place + 1
        size = cell_size(character)
        if cells + size > width and place > start:
            place = _head_of(characters, place, start)
            has_words = last_space is not None and any(c != " " for c, _ in characters[start:last_space])
            if has_words and last_space is not None:
                return last_space, last_space + 1
            return place, place
        cells += size
    return len(characters), len(characters)


def _inked(runs: Iterable[Run]) -> list[tuple[str, Ink]]:
    """Character by character; a mark that one step put on a letter of another has the ink of the letter."""
    characters: list[tuple[str, Ink]] = []
    for text, ink in runs:
        for character in text:
            worn = characters[-1][1] if characters and joins_left(character) else ink
            characters.append((character, worn))
    return characters


def _head_of(characters: list[tuple[str, Ink]], place: int, start: int) -> int:
    """Where the letter begins that the character at `place` belongs to; `place` itself if that fills the line alone."""
    head = place
    while head > start and joins_left(characters[head][0]):
        head -= 1
    return head if head > start else place


def _as_runs(characters: list[tuple[str, Ink]]) -> list[Run]:
    runs: list[Run] = []
    for character, ink in characters:
        if runs and runs[-1][1] == ink:
            runs[-1] = (runs[-1][0] + character, ink)
        else:
            runs.append((character, ink))
    return runs
