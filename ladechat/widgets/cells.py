"""Text measured in terminal cells and made safe to print, since a model may write any character.

What this module returns as printable consists of characters that terminals draw with the same width. Line breaks, tabs,
control characters and the like become visible symbols; characters that only modify their neighbour, and are drawn
differently by terminals (joiners, variation selectors, skin tones, flag letters), are reduced to plain parts.

`cell_size` is the single measure. It counts the cells of a text as `drawn` sends it to the terminal. After
`measure_alike`, Rich and Textual, and so the prompt, measure by it too.
"""

import re
import unicodedata
from functools import cache, lru_cache
from itertools import accumulate

from rich import cells as rich_cells
from rich._unicode_data import load
from rich.cells import CellTable, get_character_cell_size

ELLIPSIS = "…"
SPACE = "·"
"""Stands for a space at either end of a token, where it would be invisible."""
NO_TEXT = "◌"
"""Stands for a token without text, and carries a combining mark that has no letter."""
UNPRINTABLE = "▯"
BLOCKS = " ▁▂▃▄▅▆▇█"
"""A cell filled by no, one … eight eighths, from below."""

CONTROL_SYMBOLS: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), UNPRINTABLE),
    ord("\n"): "⏎",
    ord("\r"): "␍",
    ord("\t"): "⇥",
}
"""Control characters, and the symbols shown in their place."""

PLAIN_PARTS: dict[int, str] = {
    0x200D: "",
    **dict.fromkeys(range(0xFE00, 0xFE10), ""),
    **dict.fromkeys(range(0x1F3FB, 0x1F400), ""),
    **{0x1F1E6 + letter: chr(ord("A") + letter) for letter in range(26)},
    # Letters by name, but blank, and of different widths in different terminals.
    **dict.fromkeys((0x115F, 0x1160, 0x3164, 0xFFA0), UNPRINTABLE),
}
"""Characters that terminals draw in different ways, and their replacements."""

_SYMBOLS = CONTROL_SYMBOLS | PLAIN_PARTS
_HAS_PARTS = re.compile(f"[{''.join(map(chr, PLAIN_PARTS))}]")


@lru_cache(maxsize=8192)
def cell_size(character: str) -> int:
    """Return the cells that a character takes, as `drawn`: 0, 1 or 2.

    A spacing mark, such as most vowel signs of Devanagari, has a cell of its own in xterm, VTE, tmux and the C library.
    Rich counts it as part of the letter before; a line measured too short would overlap its right neighbour. Where a
    terminal does draw both in one cell, the line only ends with a little more space.
    """
    own = own_size(character)
    return get_character_cell_size(character) if own is None else own


def own_size(character: str) -> int | None:
    """Return the cells of a character that Rich counts differently; None for all others."""
    if (part := PLAIN_PARTS.get(ord(character))) is not None:
        return len(part)
    return 1 if unicodedata.category(character) == "Mc" else None


@lru_cache(maxsize=8192)
def cell_len(text: str) -> int:
    """Return the cells that a printable text takes."""
    return len(text) if text.isascii() else sum(map(cell_size, text))


def drawn(text: str) -> str:
    """Return `text`, which may hold escape sequences, in a form that all terminals draw in the counted cells."""
    return text.translate(PLAIN_PARTS) if _HAS_PARTS.search(text) else text


@lru_cache(maxsize=8192)
def joins_left(character: str) -> bool:
    """Return whether a character is part of the one before it: a mark, or a character without a cell of its own."""
    return unicodedata.category(character).startswith("M") or not cell_size(character)


@lru_cache(maxsize=8192)
def printable(text: str) -> str:
    """Return `text` without characters that move the cursor, hide text, or change their neighbours' width."""
    text = text.translate(_SYMBOLS)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else SPACE if c.isspace() else UNPRINTABLE for c in text)
    if text and joins_left(text[0]):
        text = NO_TEXT + text
    return text


@lru_cache(maxsize=8192)
def visible(piece: str) -> str:
    """Return a token's text with its outer spaces visible, and a symbol if there is no text."""
    text = printable(piece)
    core = text.strip(" ")
    if not core:
        return SPACE * len(text) or NO_TEXT
    before = len(text) - len(text.lstrip(" "))
    after = len(text) - len(text.rstrip(" "))
    return SPACE * before + core + SPACE * after


@lru_cache(maxsize=8192)
def shorten(text: str, width: int) -> str:
    """Return `text`, printable, in at most `width` cells; a cut is marked by `…`."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    reached = accumulate(map(cell_size, text))
    return text[: next(end for end, cells in enumerate(reached) if cells >= width)] + ELLIPSIS


def fit(text: str, width: int) -> str:
    """Return `text`, printable, in exactly `width` cells: shortened with `…`, or padded with spaces on the right."""
    text = shorten(text, width)
    return text + " " * (width - cell_len(text))


TAGS = 0xE0000
"""From this code point on, no character has a width of its own."""


@cache
def measure_alike() -> None:
    """Make Rich and Textual measure by `cell_size` from now on, so that the cursor is where the terminal draws it.

    Neither has a setting for this, so the three functions of Rich that count cells are replaced, here alone. Rich
    counts no cell for a vowel sign of Hindi, and the cells of one for three joined emoji; terminals differ in both.
    """
    table = _table(load())
    vars(rich_cells).update(
        load_cell_table=lambda _="auto": table,
        _cell_len=lambda text, _: sum(map(cell_size, text)),
        split_graphemes=_characters,
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
    return spans, sum(map(cell_size, text))


_AS_SPACES = dict.fromkeys(
    (*range(9, 14), *range(28, 32), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    " ",
)
"""All white space."""


def folded(text: str) -> str:
    """Return a text normalized for searching: case-folded, with each white space character as a space."""
    return text.translate(_AS_SPACES).casefold()
