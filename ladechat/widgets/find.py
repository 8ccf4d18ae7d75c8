"""Where a text stands in the lines of the conversation."""

from collections.abc import Sequence

from textual.geometry import Offset
from textual.selection import Selection

from ladechat.widgets.block import INDENT, Block
from ladechat.widgets.flow import Line


def last_said(blocks: Sequence[Block], end: int, text: str) -> Selection | None:
    """The last place of a text in a question or an answer: not in their names, nor in what the program says.

    Args:
        blocks: where it is looked for.
        end: the number of the line behind them in the conversation.
        text: not empty.
    """
    first = end
    for block in reversed(blocks):
        first -= len(block.lines)
        named = bool(block.name)
        if block.kind != "notice" and (place := _last_place(block.lines[named:], first + named, text)):
            return place
    return None


def _last_place(lines: Sequence[Line], first: int, text: str) -> Selection | None:
    """The last place of a text, however it is wrapped. Case does not matter. `first` is the number of the first line in
    the conversation.
    """
    written, places = "", []
    for y, line in enumerate(lines, start=first):
        indent = INDENT if line.text.startswith(" " * INDENT) else 0
        for x, character in enumerate(line.text[indent:] + line.joint, start=indent):
            folded = character.casefold()  # which may be longer: ß is ss
            written += folded
            places += [Offset(x, y)] * len(folded)
    wanted = text.casefold()
    start = written.rfind(wanted)
    if start < 0:
        return None
    return Selection(places[start], places[start + len(wanted) - 1] + Offset(1, 0))
