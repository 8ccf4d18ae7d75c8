"""Sentences in a panel of their own."""

import textwrap

from rich.style import Style
from textual.geometry import Size

from ladechat.widgets.cells import shorten
from ladechat.widgets.panels.panel import Panel, Row


class Remarks(Panel):
    """Sentences, the first of them highlighted; wrapped, as many as fit."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.sentences: tuple[str, ...] = ()

    def say(self, *sentences: str) -> None:
        """Replace the sentences."""
        if sentences != self.sentences:
            self.sentences = sentences
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width, 0))

    def rows(self, width: int, height: int) -> list[Row]:
        return [
            [(line, Style(bold=True) if number == 0 else self.muted)]
            for number, sentence in enumerate(self.sentences)
            for line in textwrap.wrap(shorten(sentence, 4 * width), max(width, 1))
        ]
