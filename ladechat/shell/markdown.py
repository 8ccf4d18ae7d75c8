"""Markdown as it is written, for a terminal outside of the app: marks become styles, piece by piece."""

import re
from collections.abc import Iterator

from rich.style import Style

STRONG, EMPHASIS, HEADING, FENCE = (Style.parse(word) for word in ("bold", "italic", "bold", "dim"))
MOST_HELD = 300
"""The most characters of a line that wait for the end of a mark: more are printed as they were written."""

_HEADING = re.compile(r" {0,3}#{1,6} +")
_BULLET = re.compile(r"( *)[-*+] +(?=\S)")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_MAY_BEGIN = re.compile(r" {0,3}#{0,6} *|[ ]*[-*+] *| {0,3}(`{1,2}|~{1,2})")
"""What may still become a heading, an item of a list, or a fence."""
_MARK = re.compile(r"`+|\*{1,2}")

Piece = tuple[str, Style]


class MarkdownStream:
    """Turns pieces of Markdown into styled pieces, which may be printed at once.

    Headings and strong text are bold, emphasis is italic, bullets are •. Code keeps its marks, and so can be copied, as
    do links and tables. A mark that is not closed on its line is printed as it was written: nothing is lost.
    """

    def __init__(self) -> None:
        self._line: list[Piece] = []  # the characters of what is not printed yet of the current line
        self._begins = True  # whether the beginning of the line is among it
        self._before = ""  # the character before it
        self._line_style = Style()
        self._fence = ""

    def feed(self, text: str, style: Style) -> Iterator[Piece]:
        """Yield what can be printed after this piece, which may begin and end anywhere."""
        for part in re.split("(\n)", text):
            if part != "\n":
                self._line += ((character, style) for character in part)
                continue
            yield from self._go_on(whole=True)
            yield "\n", style
            self._begins, self._before, self._line_style = True, "", Style()
        yield from self._go_on(whole=False)

    def end(self) -> Iterator[Piece]:
        """Yield what has waited for more."""
        yield from self._go_on(whole=True)

    def _go_on(self, *, whole: bool) -> Iterator[Piece]:
        """Yield what can be printed of the line; `whole`: no more of it will come."""
        if self._begins and self._line:
            written = self._written
            if not whole and (self._may_be_fence(written) or (not self._fence and _MAY_BEGIN.fullmatch(written))):
                return
            self._begins = False
            yield from self._beginning(written)
        if self._fence:
            yield from self._take(len(self._line))
            return
        while self._line:
            mark = _MARK.search(self._written)
            yield from self._take(mark.start() if mark else len(self._line))
            if mark is None:
                return
            taken = self._marked(mark[0], whole)
            if taken is None and not whole and len(self._line) < MOST_HELD:
                return
            yield from self._take(len(mark[0])) if taken is None else taken

    @property
    def _written(self) -> str:
        return "".join(character for character, _ in self._line)

    def _may_be_fence(self, written: str) -> bool:
        """Return whether a line is a fence, or may become one that closes the code."""
        mark = self._fence[:1]
        return bool(_FENCE.match(written)) or bool(mark and re.fullmatch(rf" {{0,3}}{mark}*", written))

    def _beginning(self, written: str) -> Iterator[Piece]:
        """Yield the beginning of a line, and note what it makes of the line."""
        if fence := _FENCE.match(written):
            if not self._fence:
                self._fence = fence[1]
                yield from self._take(len(written), FENCE)
            elif fence[1].startswith(self._fence) and written.strip() == fence[1]:
                yield from self._take(len(written), FENCE)
                self._fence = ""
        elif self._fence:
            return
        elif heading := _HEADING.match(written):
            del self._line[: heading.end()]
            self._line_style = HEADING
        elif bullet := _BULLET.match(written):
            _, style = self._line[len(bullet[1])]
            del self._line[: bullet.end()]
            yield f"{bullet[1]}• ", style

    def _marked(self, mark: str, whole: bool) -> Iterator[Piece] | None:
        """Return what a mark at the beginning of the line's rest encloses, in its style, or the mark itself if it opens
        nothing; None if it is not closed yet.
        """
        written, width = self._written, len(mark)
        if width == len(written):  # it may become a longer one
            return None
        is_code = mark[0] == "`"
        if not is_code and (written[width].isspace() or (width == 1 and self._before.isalnum())):
            return self._take(width)
        closing = rf"(?<!`){mark}(?!`)" if is_code else rf"(?<![\s*]){re.escape(mark)}(?!\*)"
        closed = re.compile(closing).search(written, width + 1)
        if closed is None or (closed.end() == len(written) and not whole):
            return None
        if is_code:
            return self._take(closed.end())
        del self._line[closed.start() : closed.end()]
        del self._line[:width]
        return self._take(closed.start() - width, STRONG if width == 2 else EMPHASIS)

    def _take(self, count: int, style: Style | None = None) -> Iterator[Piece]:
        """Remove the first `count` waiting characters, and yield them."""
        taken, self._line = self._line[:count], self._line[count:]
        if taken:
            self._before, _ = taken[-1]
        for text, own in taken:
            yield text, own + self._line_style + (style or Style())
