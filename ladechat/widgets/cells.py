"""Text measured in terminal cells, and safe to print: what a model writes may hold anything.

Everything returned from here consists of characters that terminals draw with the same width. Line breaks, tabs, control
characters and the like become visible symbols; what only modifies its neighbour, and is drawn differently from terminal
to terminal (joiners, variation selectors, skin tones, flag letters), is reduced to plain parts.

`cell_size` is the one measure, of what `drawn` makes of a text on its way to the terminal. Rich and Textual, and with
them the prompt, measure by it too (`measuring.py`).
"""

import re
import unicodedata
from functools import lru_cache
from itertools import accumulate

from rich.cells import get_character_cell_size

ELLIPSIS = "…"
SPACE = "·"
"""Stands for a space at either end of a token, where it would not be seen."""
NO_TEXT = "◌"
"""Stands for a token without text of its own, and carries a combining mark that has no letter to sit on."""
UNPRINTABLE = "▯"

CONTROL_SYMBOLS: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), UNPRINTABLE),
    ord("\n"): "⏎",
    ord("\r"): "␍",
    ord("\t"): "⇥",
}
"""What steers a terminal, and what is shown in its place."""

PLAIN_PARTS: dict[int, str] = {
    0x200D: "",
    **dict.fromkeys(range(0xFE00, 0xFE10), ""),
    **dict.fromkeys(range(0x1F3FB, 0x1F400), ""),
    **{0x1F1E6 + letter: chr(ord("A") + letter) for letter in range(26)},
    # Letters by name that are nothing but room, and not the same room everywhere.
    **dict.fromkeys((0x115F, 0x1160, 0x3164, 0xFFA0), UNPRINTABLE),
}
"""What terminals draw in more ways than one, and what is drawn in its place."""

_SYMBOLS = CONTROL_SYMBOLS | PLAIN_PARTS
_HAS_PARTS = re.compile(f"[{''.join(map(chr, PLAIN_PARTS))}]")


@lru_cache(maxsize=8192)
def cell_size(character: str) -> int:
    """Return the cells that a character takes, as `drawn`: 0, 1 or 2.

    A spacing mark, such as most vowel signs of Devanagari, has a cell of its own in xterm, VTE, tmux and the C library.
    Rich counts it into the letter before; a line that is taken for shorter than it is would run into what stands right
    of it. Where a terminal does draw both in one cell, the line is only followed by a little more space.
    """
    own = own_size(character)
    return get_character_cell_size(character) if own is None else own


def own_size(character: str) -> int | None:
    """Return the cells of a character that rich counts otherwise; None for all others."""
    if (part := PLAIN_PARTS.get(ord(character))) is not None:
        return len(part)
    return 1 if unicodedata.category(character) == "Mc" else None


@lru_cache(maxsize=8192)
def cell_len(text: str) -> int:
    """Cells that a printable text takes."""
    return len(text) if text.isascii() else sum(map(cell_size, text))


def drawn(text: str) -> str:
    """Return `text`, which may hold escape sequences, as every terminal draws it: in as many cells as are counted."""
    return text.translate(PLAIN_PARTS) if _HAS_PARTS.search(text) else text


@lru_cache(maxsize=8192)
def joins_left(character: str) -> bool:
    """Whether a character is part of the one before it: a mark, or what has no cell of its own."""
    return unicodedata.category(character).startswith("M") or not cell_size(character)


@lru_cache(maxsize=8192)
def printable(text: str) -> str:
    """`text` without any character that would move the cursor, hide, or change the width of its neighbours."""
    text = text.translate(_SYMBOLS)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else SPACE if c.isspace() else UNPRINTABLE for c in text)
    if text and joins_left(text[0]):
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
    reached = accumulate(map(cell_size, text))
    return text[: next(end for end, cells in enumerate(reached) if cells >= width)] + ELLIPSIS


def fit(text: str, width: int) -> str:
    """`text`, printable, in exactly `width` cells: shortened with `…`, or filled with spaces on the right."""
    text = shorten(text, width)
    return text + " " * (width - cell_len(text))
