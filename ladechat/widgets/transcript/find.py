"""Search for a text in the lines of the conversation."""

from collections.abc import Callable, Sequence

from textual.geometry import Offset
from textual.selection import Selection

from ladechat.widgets.flow import Line
from ladechat.widgets.transcript.block import INDENT, Block, folded


def first_in(block: Block, first: int, text: str) -> Selection | None:
    """Return the first occurrence of a text in a message that begins at line `first` of the conversation."""
    named = bool(block.name)
    return _place(block.lines[named:], first + named, text, str.find)


def last_said(blocks: Sequence[Block], end: int, text: str) -> Selection | None:
    """Return the last occurrence of a text in a question or an answer, excluding names and notices.

    Args:
        blocks: the messages to search.
        end: the number of the line after them in the conversation.
        text: not empty.
    """
    first = end
    for block in reversed(blocks):
        first -= len(block.lines)
        named = bool(block.name)
        if block.kind != "notice" and (place := _place(block.lines[named:], first + named, text, str.rfind)):
            return place
    return None


def _place(lines: Sequence[Line], first: int, text: str, find: Callable[[str, str], int]) -> Selection | None:
    """Return the first occurrence of a text (with `str.rfind` the last), across wrapped lines. Case does not matter,
    nor whether words are separated by spaces or line breaks. `first` is the number of the first line in the
    conversation.
    """
    written, places = "", []
    for y, line in enumerate(lines, start=first):
        indent = INDENT if line.text.startswith(" " * INDENT) else 0
        for x, character in enumerate(line.text[indent:] + line.joint, start=indent):
            searched = folded(character)  # may be longer than the character: ß is ss
            written += searched
            places += [Offset(x, y)] * len(searched)
    wanted = folded(text)
    start = find(written, wanted)
    if start < 0:
        return None
    return Selection(places[start], places[start + len(wanted) - 1] + Offset(1, 0))
