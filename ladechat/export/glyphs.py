"""Draws characters as pixels: text in a font of this machine, lines and blocks as rectangles, so that they join."""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont

from ladechat.widgets.cells import cell_size

FONT_PIXELS = 15
FONTS = (
    ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf"),
    ("LiberationMono-Regular.ttf", "LiberationMono-Bold.ttf"),
    ("NotoSansMono-Regular.ttf", "NotoSansMono-Bold.ttf"),
    ("UbuntuMono-R.ttf", "UbuntuMono-B.ttf"),
    ("FreeMono.ttf", "FreeMonoBold.ttf"),
    ("Menlo.ttc", "Menlo.ttc"),
    ("Monaco.ttf", "Monaco.ttf"),
    ("consola.ttf", "consolab.ttf"),
)
"""Monospaced fonts with their bold faces, the most characters first. Pillow finds them in the system's folders."""
LINES = {"─│┌┐└┘├┤┬┴┼╭╮╯╰": 1, "━┃┏┓┗┛┣┫┳┻╋": 2}
"""Box drawing characters, by the width of their lines in pixels."""
BLOCKS = {
    **{chr(0x2580 + eighths): (0, 8 - eighths, 8, 8) for eighths in range(1, 9)},
    **{chr(0x2590 - eighths): (0, 0, eighths, 8) for eighths in range(1, 8)},
    "▀": (0, 0, 8, 4),
    "▐": (4, 0, 8, 8),
    "▔": (0, 0, 8, 1),
    "▕": (7, 0, 8, 8),
}
"""Block elements as left, top, right and bottom, in eighths of a cell."""

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are outside."""


class NoFont(Exception):
    """There is no monospaced font on this machine."""


class Glyphs:
    """Draws characters in cells of a fixed size.

    Attributes:
        width, height: the size of a cell, in pixels.

    Raises:
        NoFont: there is no font to draw with.
    """

    def __init__(self) -> None:
        self._fonts = _fonts()
        self._ascent, descent = self._fonts[0].getmetrics()
        self.width, self.height = round(self._fonts[0].getlength("M")), self._ascent + descent

    @lru_cache(maxsize=4096)  # noqa: B019 - it lives as long as what it caches
    def mask(self, text: str, bold: bool, underlined: bool) -> Image.Image:
        """Return the coverage of each pixel by a character, 0 to 255; two cells wide for a wide character."""
        mask = Image.new("L", (self.width * max(cell_size(text[0]), 1), self.height))
        pen = ImageDraw.Draw(mask)
        boxes = list(self._boxes(text))
        for box in boxes:
            _fill(pen, box)
        if not boxes:
            pen.text((0, self._ascent), text, fill=255, font=self._fonts[bold], anchor="ls")
        if underlined:
            _fill(pen, (0, self._ascent + 2, mask.width, self._ascent + 3))
        return mask

    def _boxes(self, character: str) -> Iterator[Box]:
        """Yield the rectangles of a line or block character; none for other characters."""
        width, height = self.width, self.height
        if character in BLOCKS:
            left, top, right, bottom = BLOCKS[character]
            yield round(left * width / 8), round(top * height / 8), round(right * width / 8), round(bottom * height / 8)
        thickness = next((wide for characters, wide in LINES.items() if character in characters), 0)
        if thickness:
            words = unicodedata.name(character).split()
            x, y = (width - thickness) // 2, (height - thickness) // 2
            if {"HORIZONTAL", "LEFT"} & set(words):
                yield 0, y, x + thickness, y + thickness
            if {"HORIZONTAL", "RIGHT"} & set(words):
                yield x, y, width, y + thickness
            if {"VERTICAL", "UP"} & set(words):
                yield x, 0, x + thickness, y + thickness
            if {"VERTICAL", "DOWN"} & set(words):
                yield x, y, x + thickness, height


def _fonts() -> tuple[FreeTypeFont, FreeTypeFont]:
    """Return a plain face and a bold one; the plain one twice if there is no bold one."""
    for plain, bold in FONTS:
        if (font := _font(plain)) is not None:
            return font, _font(bold, index=int(bold == plain and bold.endswith("c"))) or font
    raise NoFont


def _font(name: str, index: int = 0) -> FreeTypeFont | None:
    try:
        return ImageFont.truetype(name, FONT_PIXELS, index=index)
    except OSError:
        return None


def _fill(pen: ImageDraw.ImageDraw, box: Box) -> None:
    left, top, right, bottom = box
    if right > left and bottom > top:
        pen.rectangle((left, top, right - 1, bottom - 1), fill=255)
