"""Markdown as styled lines: headings, lists, tables and listings as they are read, wrapped like any other text.

The text is parsed block by block, so when it grows at its end, only its last block is parsed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ladechat.widgets.flow import Ink, Line
from ladechat.widgets.transcript.markdown_blocks import blocks_of
from ladechat.widgets.transcript.markdown_parts import Paragraph, Part

MOST_CHARACTERS = 200_000
"""Limit on the formatted characters of a text; those beyond are shown raw."""


@dataclass
class Formatted:
    """A Markdown text that may grow at its end, as lines for the current width.

    Blocks that can no longer change are cached: all before the last block that follows an empty line and whose first
    line is complete.
    """

    width: int
    _source: str = ""
    _done: list[Line] = field(default_factory=list)
    _parts: list[Part] = field(default_factory=list)
    _last: list[Part] = field(default_factory=list)
    _last_start: int = 0
    _tail: list[Line] = field(default_factory=list)

    @property
    def lines(self) -> list[Line]:
        """All of it."""
        return [*self._done, *self._tail]

    def show(self, source: str) -> None:
        """Replace the text, which must begin with the text shown before."""
        self._source = source
        beginning, beyond = source[:MOST_CHARACTERS], source[MOST_CHARACTERS:]
        blocks = blocks_of(beginning, self._last_start, bool(self._parts))
        last = max((n for n, block in enumerate(blocks) if _is_apart(source, block.start)), default=0)
        for block in blocks[:last]:
            self._parts += block.parts
            self._done += self._wrapped(block.parts)
        self._last = [part for block in blocks[last:] for part in block.parts]
        self._last_start = blocks[last].start if blocks else self._last_start
        if beyond:
            self._last += _as_written(source, MOST_CHARACTERS)
        self._tail = self._wrapped(self._last)

    def wrap(self, width: int) -> None:
        """Wrap all blocks again for a width in cells."""
        self.width = width
        self._done, self._tail = self._wrapped(self._parts), self._wrapped(self._last)

    def _wrapped(self, parts: Sequence[Part]) -> list[Line]:
        return [line for part in parts for line in part.lines(self.width)]


def _is_apart(source: str, start: int) -> bool:
    """Return whether a block stays separate from the one before it, however the text continues.

    It must follow an empty line, and its first line must be complete: after a list, `2` may still become the item `2.
    two` of it.
    """
    line_before = source.rfind("\n", 0, max(start - 1, 0)) + 1
    return start > 0 and not source[line_before:start].strip() and source.find("\n", start) >= 0


def _as_written(source: str, start: int) -> list[Part]:
    parts: list[Part] = []
    for text in source[start:].split("\n"):
        parts.append(Paragraph([(text, Ink("plain"))], [], [], source, start, start + len(text)))
        start += len(text) + 1
    return parts
