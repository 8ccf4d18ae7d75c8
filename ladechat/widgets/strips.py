"""Lines of the screen, made of texts whose cells are counted as terminals count them."""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from ladechat.widgets.cells import cell_len, cell_size


def strip_of(segments: Iterable[Segment], width: int, base: Style) -> Strip:
    """Return a line exactly `width` cells wide, cut or padded.

    Args:
        segments: printable texts.
        width: in cells.
        base: the style of the padding.
    """
    fitted: list[Segment] = []
    room = width
    for text, style, _ in segments:
        fitting = text if cell_len(text) <= room else _head(text, room)
        if fitting:
            fitted.append(Segment(fitting, style))
        room -= cell_len(fitting)
        if fitting != text:
            break
    if room > 0:
        fitted.append(Segment(" " * room, base))
    # The width is passed, not measured: Rich would count fewer cells, see `cell_size`.
    return Strip(fitted, width)


def _head(text: str, cells: int) -> str:
    """Return as much of the beginning as fits; a wide character is never split."""
    used = 0
    for place, character in enumerate(text):
        used += cell_size(character)
        if used > cells:
            return text[:place]
    return text


def restyle(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """Return the segments, with characters `start` to `end` in the given style."""
    restyled: list[Segment] = []
    place = 0
    for text, own, _ in segments:
        for character in text:
            inside = start <= place < end
            restyled.append(Segment(character, (own or Style()) + style if inside else own))
            place += 1
    return list(Segment.simplify(restyled))
