"""An answer that comes piece by piece, on a terminal: broken between words."""

import io
import unicodedata

import pyte
import pytest
from rich.console import Console
from rich.style import Style

from ladechat.shell.word_wrap import WordWrap
from ladechat.widgets.cells import drawn, joins_left

LINES = 60


class Stream(io.StringIO):
    """Takes what is written; a terminal, or a pipe whose reader wants colours."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Joining(pyte.Screen):
    """A terminal that draws every mark in the cell of the letter before it, as kitty does, where others take a cell."""

    def draw(self, data: str) -> None:
        for character in data:
            if not joins_left(character):
                super().draw(character)
                continue
            row, column = (self.cursor.y, self.cursor.x) if self.cursor.x else (self.cursor.y - 1, self.columns)
            while not self.buffer[row][column - 1].data:  # the second half of a wide character
                column -= 1
            letter = self.buffer[row][column - 1]
            self.buffer[row][column - 1] = letter._replace(data=letter.data + character)


class Spacing(Joining):
    """A terminal that gives every mark that has room of its own a cell, as xterm does."""

    def draw(self, data: str) -> None:
        for character in data:
            if unicodedata.category(character) == "Mc":
                super().draw("◌")
                self.buffer[self.cursor.y][self.cursor.x - 1] = self.default_char._replace(data=character)
            else:
                super().draw(character)


def lines_of(
    pieces: list[str],
    width: int,
    term: str = "xterm",
    *,
    terminal: bool = True,
    emulated: type[pyte.Screen] = pyte.Screen,
) -> list[str]:
    """What is on a screen of that width in the end."""
    out = Stream(terminal)
    console = Console(file=out, force_terminal=True, width=width, height=LINES, soft_wrap=True, _environ={"TERM": term})
    wrapped = WordWrap(console)
    for piece in pieces:
        wrapped.write(piece, Style(underline=True))
    screen = emulated(width, LINES)
    pyte.Stream(screen).feed(out.getvalue().replace("\n", "\r\n"))
    return "\n".join(line.rstrip() for line in screen.display).rstrip().split("\n")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three four", ["one two", "three", "four"]),
        ("one two th", ["one two", "th"]),
        ("one\n\n  two and\n", ["one", "", "  two and"]),
        ("123456789 next", ["123456789", "next"]),
        ("1234567890 next", ["1234567890", "next"]),
        ("a 1234567890123 b", ["a", "1234567890", "123 b"]),
        ("漢字漢字漢字 is", ["漢字漢字", "漢字 is"]),
        ("is 漢字漢字漢字", ["is 漢字漢", "字漢字"]),
        ("\tif x", ["        if", "x"]),
        ("ab\tc", ["ab      c"]),
        ("two  spaces here", ["two", "spaces", "here"]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_lines_end_between_words_wherever_the_pieces_end(text: str, lines: list[str], size: int) -> None:
    assert lines_of([text[at : at + size] for at in range(0, len(text), size)], 10) == lines


@pytest.mark.parametrize(("term", "terminal"), [("dumb", True), ("xterm", False)])
def test_where_nothing_can_be_taken_back_the_text_is_as_it_came(term: str, terminal: bool) -> None:
    assert lines_of(["one two th", "ree", " four"], 10, term, terminal=terminal) == ["one two th", "ree four"]


def test_a_vowel_sign_takes_a_cell_of_its_own_as_in_the_app() -> None:
    assert lines_of(["किकि किकि कि"], 10, emulated=Spacing) == ["किकि किकि", "कि"]


@pytest.mark.parametrize("emulated", [Joining, Spacing])
@pytest.mark.parametrize("width", [4, 6, 9, 14, 40])
@pytest.mark.parametrize(
    "text",
    [
        "किकि किकि की किताब पढ़ना अच्छा लगता है",
        "தமிழ் மொழி கொண்டு எழுதுதல்",
        "น้ำ ภาษาไทย กำลังดี",
        "cafe\u0301 re\u0301sume\u0301 done",
        "か\u3099き\u3099く\u3099 漢字 and か\u3099",
        "👩\u200d🚀 rocket 👨\u200d👩\u200d👧 family ✍️ 🇩🇪 flag",
        "\u1112\u1161\u11ab\u1100\u116e\u11a8 한국어",
    ],
)
def test_no_character_is_lost_however_a_terminal_counts_the_cells_of_marks(
    text: str, width: int, emulated: type[pyte.Screen]
) -> None:
    for size in (1, 2, 3, 100):
        lines = lines_of([text[at : at + size] for at in range(0, len(text), size)], width, emulated=emulated)
        assert "".join(lines).replace(" ", "") == drawn(text).replace(" ", "")
        assert not any(joins_left(line[0]) for line in lines) or width < 6
