"""Writes an answer to standard output: on a terminal wrapped at words, its Markdown formatted; in a pipe as it is."""

from collections.abc import Iterable

from rich.console import Console
from rich.style import Style

from ladechat.shell.markdown import MarkdownStream, Piece
from ladechat.shell.word_wrap import WordWrap
from ladechat.terminal import shown

PLAIN = Style()


def console() -> Console:
    """Return standard output, to which text is written as it is."""
    return Console(highlight=False, soft_wrap=True)


class AnswerWriter:
    """Writes text piece by piece to a console."""

    def __init__(self, out: Console) -> None:
        self._wrapped = WordWrap(out)
        self._formats = out.file.isatty() and not out.is_dumb_terminal  # not in a pipe that gets colours
        self._markdown = MarkdownStream()

    def write(self, text: str, style: Style = PLAIN) -> None:
        """Write a piece, which may begin and end anywhere. Control characters are made visible."""
        self._write(self._markdown.feed(shown(text), style) if self._formats else [(shown(text), style)])

    def end(self) -> None:
        """Write what has waited for more."""
        self._write(self._markdown.end())

    def _write(self, pieces: Iterable[Piece]) -> None:
        for text, style in pieces:
            self._wrapped.write(text, style)
