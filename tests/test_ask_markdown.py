"""Markdown that comes piece by piece, as `ladechat ask` prints it on a terminal."""

import pytest
from hypothesis import given, strategies as st
from rich.style import Style

from ladechat.shell.markdown import MarkdownStream
from tests.test_word_wrap import Stream

PLAIN = Style()


def printed(*pieces: str) -> list[tuple[str, Style]]:
    """Each character that is printed, with its style."""
    stream = MarkdownStream()
    written = [one for piece in pieces for one in stream.feed(piece, PLAIN)]
    written += stream.end()
    return [(character, style) for text, style in written for character in text]


def marked(*pieces: str) -> str:
    """What is printed, with words for the styles."""
    text, before = "", ""
    for character, style in printed(*pieces):
        now = "" if str(style) == "none" else str(style)
        text += (f"</{before}>" if before and now != before else "") + (f"<{now}>" if now and now != before else "")
        text, before = text + character, now
    return text + (f"</{before}>" if before else "")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("It is **very** *good*.", "It is <bold>very</bold> <italic>good</italic>."),
        ("## A heading\ntext", "<bold>A heading</bold>\ntext"),
        ("- one\n  * two\n+ **three**", "• one\n  • two\n• <bold>three</bold>"),
        ("`a * b` and `**kwargs`", "`a * b` and `**kwargs`"),
        ("2 * 3 ** 4, a*b*c, 5*", "2 * 3 ** 4, a*b*c, 5*"),
        ("not **closed\nnext", "not **closed\nnext"),
        ("#5 and -5 and *", "#5 and -5 and *"),
        (
            "```python\nx = **1**\n# no heading\n```\n*end*",
            "<dim>```python</dim>\nx = **1**\n# no heading\n<dim>```</dim>\n<italic>end</italic>",
        ),
        ("```\n~~~\n```", "<dim>```</dim>\n~~~\n<dim>```</dim>"),
        ("| a | b |\n|---|---|", "| a | b |\n|---|---|"),
        ("---\n***", "---\n***"),
    ],
)
def test_marks_become_styles_and_nothing_else_changes(written: str, shown: str) -> None:
    assert marked(written) == shown


@given(st.lists(st.text("a*`# -\n>~1_", max_size=4), max_size=20))
def test_how_a_text_is_cut_into_pieces_changes_nothing(pieces: list[str]) -> None:
    assert printed(*pieces) == printed("".join(pieces))


@given(st.text("ab `\n", max_size=40))
def test_a_text_without_marks_is_printed_as_it_is(text: str) -> None:
    assert "".join(character for character, _ in printed(text)) == text


def test_words_are_printed_as_soon_as_they_come() -> None:
    stream, written = MarkdownStream(), ""
    for piece, so_far in (
        ("The ", "The "),
        ("n-gram", "The n-gram"),
        (" *po", "The n-gram "),
        ("ol* is", "The n-gram pool is"),
    ):
        written += "".join(text for text, _ in stream.feed(piece, PLAIN))
        assert written == so_far


def test_a_mark_without_end_holds_back_no_more_than_some_lines() -> None:
    stream = MarkdownStream()
    written = "".join(text for text, _ in stream.feed("**" + 1000 * "word ", PLAIN))
    assert written.startswith("**word word")


def test_a_pipe_that_gets_colours_gets_the_marks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from ladechat.shell.answer_writer import AnswerWriter

    for terminal, expected in ((True, "very good"), (False, "**very** good")):
        out = Stream(terminal)
        writer = AnswerWriter(Console(file=out, force_terminal=True, color_system=None, width=40, legacy_windows=False))
        writer.write("**very** good")
        writer.end()
        assert expected in out.getvalue().replace("\x1b7", "")
