"""Writes a film as an animated GIF: the changed cells, in a palette of the app's colours and the shades between."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from PIL import Image
from PIL.GifImagePlugin import getdata
from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.style import Style

from ladechat.export.cells import Cell, Screen, Span, changes
from ladechat.export.film import Frame, Progress, silent
from ladechat.export.glyphs import Glyphs

SHADES = 7
"""Shades from a cell's background to its text colour. With so few, all pairs of colours fit into a palette."""
COLOURS = 255
TRANSPARENT = 255
"""The index of a pixel that does not change."""
SHORTEST_DELAY = 4
"""The minimum delay of a frame, in hundredths of a second: browsers slow down films with shorter ones."""
LONGEST_DELAY = 2**16 - 1
"""The format's maximum delay, in hundredths of a second. For a longer one, a part of the screen is painted again."""
LAST_DELAY = 300
"""The delay of the last frame, in hundredths of a second, before the film repeats."""
TEXT, BACKGROUND = ColorTriplet(0xE0, 0xE0, 0xE0), ColorTriplet(0x12, 0x12, 0x12)
"""The colours of a style that names none."""

Pair = tuple[ColorTriplet, ColorTriplet]
"""The background of a cell, and its text colour."""


def gif(frames: Sequence[Frame], speed: float, progress: Progress = silent) -> bytes:
    """Return the GIF file of a film; a speed of 2 is twice as fast.

    Raises:
        NoFont: there is no font to draw with.
    """
    shown = list(_timed(frames, speed))
    screens = [screen for screen, _ in shown]
    steps = [list(changes(before, after)) for before, after in zip([None, *screens], screens, strict=False)]
    painter = _Painter(chain.from_iterable(steps))
    parts = [painter.head(screens[0])]
    for number, (spans, (_, delay)) in enumerate(zip(steps, shown, strict=True)):
        parts.append(painter.frame(spans, min(delay, LONGEST_DELAY)))
        rests = (delay - past for past in range(LONGEST_DELAY, delay, LONGEST_DELAY))
        parts += [painter.frame(spans[:1], min(rest, LONGEST_DELAY)) for rest in rests]
        progress((number + 1) / len(steps))
    return b"".join([*parts, b";"])


def _timed(frames: Sequence[Frame], speed: float) -> Iterator[tuple[Screen, int]]:
    """Yield the screens and their delays, in hundredths of a second, without screens that would only flash."""
    before: tuple[Screen, int] | None = None
    for seconds, screen in frames:
        now = round(100 * seconds / speed)
        if before is not None and now - before[1] < SHORTEST_DELAY:
            before = screen, before[1]
        else:
            if before is not None:
                yield before[0], now - before[1]
            before = screen, now
    if before is not None:
        yield before[0], LAST_DELAY


class _Painter:
    """Paints cells as indices of a palette, which is made for all spans that will be painted."""

    def __init__(self, spans: Iterator[Span]) -> None:
        self._glyphs = Glyphs()
        self._palette = _palette(Counter(pair_of(cell.style) for span in spans for cell in span.cells))

    def head(self, screen: Screen) -> bytes:
        """Return the start of the file: size, palette, and endless repetition."""
        width, height = len(screen[0]) * self._glyphs.width, len(screen) * self._glyphs.height
        size = width.to_bytes(2, "little") + height.to_bytes(2, "little")
        palette = bytes(chain.from_iterable(self._palette)).ljust(3 * (COLOURS + 1), b"\0")
        return b"GIF89a" + size + b"\xf7\0\0" + palette + b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"

    def frame(self, spans: Sequence[Span], delay: int) -> bytes:
        """Return a frame of the file: the smallest rectangle around the changed cells."""
        width, height = self._glyphs.width, self._glyphs.height
        left, top = min(span.x for span in spans), min(span.y for span in spans)
        right, bottom = max(span.x + len(span.cells) for span in spans), max(span.y + 1 for span in spans)
        image = Image.new("L", ((right - left) * width, (bottom - top) * height), TRANSPARENT)
        for span in spans:
            for x, cell in enumerate(span.cells, start=span.x):
                if cell.text:
                    image.paste(self._tile(cell), ((x - left) * width, (span.y - top) * height))
        place = left * width, top * height
        return b"".join(getdata(image, place, duration=10 * delay, transparency=TRANSPARENT, disposal=1))

    @lru_cache(maxsize=16384)  # noqa: B019 - it lives as long as what it caches
    def _tile(self, cell: Cell) -> Image.Image:
        background, text = pair_of(cell.style)
        shades = [self._index(shade) for shade in _shades((background, text))]
        mask = self._glyphs.mask(cell.text, bool(cell.style.bold), bool(cell.style.underline))
        return mask.point([shades[round(covered * (SHADES - 1) / 255)] for covered in range(256)])

    @lru_cache(maxsize=4096)  # noqa: B019
    def _index(self, colour: ColorTriplet) -> int:
        """Return the index of a colour in the palette, or of the nearest one."""

        def distance(index: int) -> int:
            return sum((a - b) ** 2 for a, b in zip(self._palette[index], colour, strict=True))

        return min(range(len(self._palette)), key=distance)


@lru_cache(maxsize=1024)
def pair_of(style: Style) -> Pair:
    """Return the background and the text colour of a style as they are seen."""
    text, background = _triplet(style.color, TEXT), _triplet(style.bgcolor, BACKGROUND)
    return (text, background) if style.reverse else (background, text)


def _triplet(colour: Color | None, default: ColorTriplet) -> ColorTriplet:
    return default if colour is None or colour.is_default else colour.get_truecolor()


@lru_cache(maxsize=1024)
def _shades(pair: Pair) -> tuple[ColorTriplet, ...]:
    """Return the shades from the background to the text."""
    return tuple(blend_rgb(*pair, cross_fade=step / (SHADES - 1)) for step in range(SHADES))


def _palette(pairs: Counter[Pair]) -> list[ColorTriplet]:
    """Return the colours, and as many of the shades between them as fit, those of the most cells first."""
    colours: Counter[ColorTriplet] = Counter()
    shades: Counter[ColorTriplet] = Counter()
    for pair, cells in pairs.items():
        colours.update(dict.fromkeys(pair, cells))
        shades.update(dict.fromkeys(_shades(pair), cells))
    ordered = [colour for colour, _ in chain(colours.most_common(), shades.most_common())]
    return list(dict.fromkeys(ordered))[:COLOURS]
