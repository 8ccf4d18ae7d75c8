"""Makes Rich and Textual measure texts as ladechat does, so that the cursor is where the terminal draws it.

Neither has a setting for this, so the three functions of Rich that count cells are replaced, in this module only. Rich
counts no cell for a vowel sign of Hindi, and the cells of one for three joined emoji; terminals differ in both. Ours
counts what `cells.drawn` sends to the terminal, which all terminals draw alike.
"""

from functools import cache

from rich import cells as rich_cells
from rich._unicode_data import load
from rich.cells import CellTable

from ladechat.widgets.cells import PLAIN_PARTS, cell_size, own_size

TAGS = 0xE0000
"""From this code point on, no character has a width of its own."""


@cache
def measure_alike() -> None:
    """Make Rich and Textual measure by `cells.cell_size` from now on."""
    table = _table(load())
    vars(rich_cells).update(
        load_cell_table=lambda _="auto": table, _cell_len=lambda text, _: _cells(text), split_graphemes=_characters
    )
    rich_cells.cached_cell_len.cache_clear()
    rich_cells.get_character_cell_size.cache_clear()


def _table(of_rich: CellTable) -> CellTable:
    """Return Rich's ranges of characters with their widths, except for marks and characters drawn as parts."""
    widths: list[tuple[int, int, int]] = []
    for first, last, cells in of_rich.widths:
        if first >= TAGS or (cells and not any(first <= part <= last for part in PLAIN_PARTS)):
            widths.append((first, last, cells))
            continue
        codes = ((code, own_size(chr(code))) for code in range(first, last + 1))
        widths += [(code, code, cells if own is None else own) for code, own in codes]
    return of_rich._replace(widths=widths, narrow_to_wide=frozenset())


def _cells(text: str) -> int:
    return sum(map(cell_size, text))


def _characters(text: str, _: str = "auto") -> tuple[list[tuple[int, int, int]], int]:
    """Return the start, end (with the marks after it) and cells of each character, and the total of cells."""
    spans: list[tuple[int, int, int]] = []
    for place, character in enumerate(text):
        cells = cell_size(character)
        if cells or not spans:
            spans.append((place, place + 1, cells))
        else:
            first, _end, before = spans[-1]
            spans[-1] = (first, place + 1, before)
    return spans, _cells(text)
