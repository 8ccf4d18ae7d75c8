"""An answer that comes piece by piece, on a terminal: broken between words."""

import io

import pyte
import pytest
from rich.console import Console
from rich.style import Style

from ladechat.word_wrap import WordWrap


def lines_of(pieces: list[str], width: int, term: str = "xterm") -> list[str]:
    """What a terminal of that width shows in the end."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=12, soft_wrap=True, _environ={"TERM": term})
    wrapped = WordWrap(console)
    for piece in pieces:
        wrapped.write(piece, Style(underline=True))
    terminal = pyte.Screen(width, 12)
    pyte.Stream(terminal).feed(out.getvalue().replace("\n", "\r\n"))
    return "\n".join(line.rstrip() for line in terminal.display).rstrip().split("\n")


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


def test_a_terminal_that_takes_nothing_back_gets_the_text_as_it_is() -> None:
    assert lines_of(["one two th", "ree", " four"], 10, "dumb") == ["one two th", "ree four"]
