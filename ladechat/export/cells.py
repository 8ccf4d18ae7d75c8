"""The app's screen as cells, and the changes from one screen to another."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rich.style import Style
from textual.app import App
from textual.strip import Strip

from ladechat.widgets.cells import cell_size


class Cell(NamedTuple):
    """A character and its style. The right half of a wide character is a cell without text."""

    text: str
    style: Style


Row = tuple[Cell, ...]
Screen = tuple[Row, ...]


class Span(NamedTuple):
    """Adjacent cells of one row.

    Attributes:
        x, y: the position of the first cell.
        cells: the cells; never the right half of a wide character without its left half.
    """

    x: int
    y: int
    cells: Row


def screen_of(app: App[int]) -> Screen:
    """Return the present screen of the app."""
    return tuple(map(_row, app.screen._compositor.render_strips()))


def changes(before: Screen | None, after: Screen, gap: int = 0) -> Iterator[Span]:
    """Yield the spans that differ between screens of one size; all of the screen if there was none before. Up to `gap`
    unchanged cells are included between two changed ones.
    """
    for y, row in enumerate(after):
        old = before[y] if before else None
        if old == row:
            continue
        differing = [x for x, cell in enumerate(row) if old is None or old[x] != cell]
        start = differing[0]
        for x, following in zip(differing, [*differing[1:], None], strict=True):
            if following is None or following - x > gap + 1:
                start -= not row[start].text  # the left half of a wide character
                yield Span(start, y, row[start : x + 1])
                start = following or 0


def _row(strip: Strip) -> Row:
    cells: list[Cell] = []
    for text, style, _ in strip:
        plain = _plain(style or Style())
        for character in text:
            size = cell_size(character)
            if not size and cells:  # a combining character joins the one before
                place = -1 if cells[-1].text else -2
                cells[place] = cells[place]._replace(text=cells[place].text + character)
            else:
                cells += [Cell(character, plain), *[Cell("", plain)] * (size - 1)]
    return tuple(cells)


@lru_cache(maxsize=4096)
def _plain(style: Style) -> Style:
    """Return the visible part of a style."""
    return style.clear_meta_and_links()
