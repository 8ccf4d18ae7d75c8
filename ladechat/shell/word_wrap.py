"""Wraps text at words on a terminal outside of the app, while the text is still being generated."""

import re

from rich.console import Console
from rich.style import Style
from rich.text import Text

from ladechat.terminal import writable
from ladechat.widgets.cells import cell_len, drawn, joins_left

WIDE = "\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\U0001f300-\U0001faff\U00020000-\U0003ffff"
"""Characters two cells wide (Chinese, Japanese, Korean, emoji): a line may be broken before and after each."""
SAVE_CURSOR = "\x1b7"
RESTORE_CURSOR_AND_ERASE = "\x1b8\x1b[K"
"""Restores the saved cursor position and erases the rest of the line. Terminals differ in the cells they count, as for
vowel signs: a cursor moved back by our count of cells could erase what precedes the word.
"""
PARTS = re.compile(f"\n|[ \t]+|[{WIDE}]|[^ \n\t{WIDE}]+")


class WordWrap:
    """Writes text at once. A word that grows too long for its line is erased, and written on the next one.

    A word longer than a line is left to the terminal, which breaks it at the margin. The same holds for text already
    written when the terminal's width changes, and for all text if nothing can be erased.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._column = 0
        self._gap = Text()  # not written yet: after a line break it is dropped
        self._word = Text()
        self._before = 0  # the column without the word, and without the gap before it

    def write(self, text: str, style: Style) -> None:
        """Write a piece of a text; it may begin and end anywhere, even within a word."""
        if self._console.is_dumb_terminal or not self._console.file.isatty():  # FORCE_COLOR colours pipes too
            self._console.print(Text(text, style), end="")
            return
        for part in PARTS.findall(drawn(writable(text, self._console.encoding))):
            if part == "\n":
                self._break_line()
            elif part[0] in " \t":
                place = self._column + cell_len(self._gap.plain)
                self._gap.append((" " * place + part).expandtabs()[place:], style)
            else:
                self._add(Text(part, style))

    def _add(self, part: Text) -> None:
        if self._gap or not _joined(self._word, part):
            self._word, self._before = Text(), self._column
            if self._before:
                self._console.file.write(SAVE_CURSOR)
        self._word.append_text(part)
        written = self._gap + part
        cells = cell_len(written.plain)
        width = max(self._console.width, 1)
        # The last column stays free: terminals differ in the cursor's position after it.
        if self._before and self._column + cells >= width:
            if self._column > self._before:
                self._console.file.write(RESTORE_CURSOR_AND_ERASE)
            self._break_line()
            written = self._word
            cells = cell_len(written.plain)
        self._gap = Text()
        self._console.print(written, end="")
        self._column = (self._column + cells - 1) % width + 1

    def _break_line(self) -> None:
        self._console.print()
        self._column = self._before = 0
        self._gap = Text()


def _joined(word: Text, part: Text) -> bool:
    """Return whether no line may be broken between them."""
    wide_beside = re.search(f"[{WIDE}]$", word.plain) or re.match(f"[{WIDE}]", part.plain)
    return joins_left(part.plain[0]) or not wide_beside
