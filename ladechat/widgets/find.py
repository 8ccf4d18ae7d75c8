"""Where a text stands in the lines of the conversation."""

from collections.abc import Sequence

from textual.geometry import Offset
from textual.selection import Selection

from ladechat.widgets.block import INDENT
from ladechat.widgets.flow import Line


def last_place(lines: Sequence[Line], first: int, text: str) -> Selection | None:
    """The last place of a text, however it is wrapped; None where it is not shown. Case does not matter.

    Args:
        lines: where it is looked for.
        first: the number of the first of them in the conversation.
        text: not empty.
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
