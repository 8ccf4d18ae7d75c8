"""Text measured in terminal cells, and safe to print: what a model writes may hold anything.

Everything returned from here consists of characters that every terminal draws with the same width. Line breaks, tabs,
control characters and the like become visible symbols; what only modifies its neighbour, and is drawn differently from
terminal to terminal (joiners, variation selectors, skin tones, flag letters), is reduced to plain parts.
"""

from functools import lru_cache
from itertools import accumulate

from rich.cells import cell_len, get_character_cell_size

ELLIPSIS = "…"
SPACE = "·"
"""Stands for a space at either end of a token, where it would not be seen."""
NO_TEXT = "◌"
"""Stands for a token without text of its own, and carries a combining mark that has no letter to sit on."""
UNPRINTABLE = "▯"

_SYMBOLS: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "␡",
    ord("\n"): "⏎",
    ord("\r"): "␍",
    ord("\t"): "⇥",
    0x200D: "",
    **dict.fromkeys(range(0xFE00, 0xFE10), ""),
    **dict.fromkeys(range(0x1F3FB, 0x1F400), ""),
    **{0x1F1E6 + letter: chr(ord("A") + letter) for letter in range(26)},
}


@lru_cache(maxsize=8192)
def printable(text: str) -> str:
    """`text` without any character that would move the cursor, hide, or change the width of its neighbours."""
    text = text.translate(_SYMBOLS)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else SPACE if c.isspace() else UNPRINTABLE for c in text)
    if text and not get_character_cell_size(text[0]):
        text = NO_TEXT + text
    return text


@lru_cache(maxsize=8192)
def visible(piece: str) -> str:
    """A token's text as one is to see it: with its outer spaces shown, and a symbol where there is no text at all."""
    text = printable(piece)
    core = text.strip(" ")
    if not core:
        return SPACE * len(text) or NO_TEXT
    before = len(text) - len(text.lstrip(" "))
    after = len(text) - len(text.rstrip(" "))
    return SPACE * before + core + SPACE * after


@lru_cache(maxsize=8192)
def shorten(text: str, width: int) -> str:
    """`text`, printable, in at most `width` cells; where something had to go, `…` says so."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    reached = accumulate(map(get_character_cell_size, text))
    return text[: next(end for end, cells in enumerate(reached) if cells >= width)] + ELLIPSIS


def fit(text: str, width: int) -> str:
    """`text`, printable, in exactly `width` cells: shortened with `…`, or filled with spaces on the right."""
    text = shorten(text, width)
    return text + " " * (width - cell_len(text))
