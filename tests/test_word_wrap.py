"""An answer that comes piece by piece, on a terminal: broken between words."""

import io

import pyte
import pytest
from rich.console import Console
from rich.style import Style

from ladechat.word_wrap import WordWrap


class Stream(io.StringIO):
    """Takes what is written; a terminal, or a pipe whose reader wants colours."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def lines_of(pieces: list[str], width: int, term: str = "xterm", *, terminal: bool = True) -> list[str]:
    """What is on a screen of that width in the end."""
    out = Stream(terminal)
    console = Console(file=out, force_terminal=True, width=width, height=12, soft_wrap=True, _environ={"TERM": term})
    wrapped = WordWrap(console)
    for piece in pieces:
        wrapped.write(piece, Style(underline=True))
    screen = pyte.Screen(width, 12)
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
    out = Stream(terminal=True)
    console = Console(file=out, force_terminal=True, width=10, soft_wrap=True, color_system=None)
    WordWrap(console).write("किकि किकि कि", Style())
    assert out.getvalue().split("\n") == ["किकि किकि", "कि"]
