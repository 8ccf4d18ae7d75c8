"""One line of the screen, made of texts whose cells are counted as terminals count them."""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ladechat.widgets.cells import cell_len, cell_size


def strip_of(segments: Iterable[Segment], width: int, base: Style) -> Strip:
    """A line exactly `width` cells wide: cut where it is longer, filled up where it is shorter.

    Args:
        segments: printable texts.
        width: cells.
        base: the style of what it is filled up with.
    """
    kept: list[Segment] = []
    room = width
    for text, style, _ in segments:
        fitting = text if cell_len(text) <= room else _head(text, room)
        if fitting:
            kept.append(Segment(fitting, style))
        room -= cell_len(fitting)
        if fitting != text:
            break
    if room > 0:
        kept.append(Segment(" " * room, base))
    # The width is given, not measured: rich would measure less, see `cell_size`.
    return Strip(kept, width)


def _head(text: str, cells: int) -> str:
    """As much of the beginning as fits; of a wide character, all or nothing."""
    used = 0
    for place, character in enumerate(text):
        used += cell_size(character)
        if used > cells:
            return text[:place]
    return text


def restyle(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """The segments, with characters `start` to `end` in the given style."""
    restyled: list[Segment] = []
    place = 0
    for text, own, _ in segments:
        for character in text:
            inside = start <= place < end
            restyled.append(Segment(character, (own or Style()) + style if inside else own))
            place += 1
    return list(Segment.simplify(restyled))
