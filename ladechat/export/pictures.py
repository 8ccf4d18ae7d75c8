"""Pictures of panels for pages: the app's own cells as rows of styled text, with colours for both backgrounds."""

from collections import Counter

from rich.style import Style
from textual.geometry import Region

from ladechat.export.cells import Cell, Row, Screen
from ladechat.export.page import on_both

Run = tuple[int, str]
"""The number of a look, and text in it."""
Picture = tuple[tuple[Run, ...], ...]
"""Rows of runs."""
CUES = {"bold": "font-weight:700", "italic": "font-style:italic", "underline": "text-decoration:underline"}


def part_of(screen: Screen, region: Region) -> Screen:
    """Return the cells of a region of the screen."""
    return tuple(row[region.x : region.right] for row in screen[region.y : region.bottom])


class Looks:
    """The looks of the cells in pictures, numbered, each in the colours of the dark and of the light theme.

    A look is known from its dark style. What has the same style in the dark theme looks alike in the light one too.
    """

    def __init__(self) -> None:
        self._light: dict[Style, Style] = {}
        self._numbers: dict[Style, int] = {}
        self._used: Counter[int] = Counter()
        self._grounds: tuple[str, str] = "", ""
        """The backgrounds, light and dark, that most cells have: the page's own stands for them."""

    def unknown(self, screen: Screen) -> bool:
        """Return whether the light colours of a cell are not known yet."""
        return any(cell.style not in self._light for row in screen for cell in row)

    def learn(self, dark: Screen, light: Screen) -> None:
        """Learn how the cells of a screen in the dark theme look in the light one."""
        if not self._light:
            self._grounds = _ground(light), _ground(dark)
        for dark_row, light_row in zip(dark, light, strict=True):
            for before, after in zip(dark_row, light_row, strict=True):
                self._light.setdefault(before.style, after.style)

    def picture(self, screen: Screen) -> Picture:
        """Return the picture of a screen in the dark theme whose looks are all known."""
        return tuple(self._row(row) for row in screen)

    def _row(self, cells: Row) -> tuple[Run, ...]:
        runs: list[Run] = []
        before: Style | None = None
        for cell in cells:
            style = before if before is not None and _blank_in(before, cell) else cell.style
            number = self._numbers.setdefault(style, len(self._numbers))
            if runs and runs[-1][0] == number:
                runs[-1] = number, runs[-1][1] + cell.text
            else:
                runs.append((number, cell.text))
            before = style
        if runs and _colour(before, background=True) == self._grounds[True]:
            runs[-1] = runs[-1][0], runs[-1][1].rstrip()
        self._used.update(number for number, _ in runs)
        return tuple(run for run in runs if run[1])

    @property
    def usual(self) -> int:
        """The look of most runs, among those that are a colour alone."""
        plain = (number for style, number in self._numbers.items() if ";" not in self._rule(style, dark=True))
        return max(plain, key=self._used.__getitem__)

    def rules(self) -> str:
        """Return the style sheet of all looks in pictures so far."""
        return on_both(
            lambda dark: "".join(f".s{number}{{{self._rule(style, dark)}}}" for style, number in self._numbers.items())
        )

    def _rule(self, style: Style, dark: bool) -> str:
        shown = style if dark else self._light[style]
        background = _colour(shown, background=True)
        named = {"color": _colour(shown), "background": "" if background == self._grounds[dark] else background}
        parts = [f"{name}:{value}" for name, value in named.items() if value]
        return ";".join(parts + [rule for cue, rule in CUES.items() if getattr(shown, cue)])


def _blank_in(style: Style, cell: Cell) -> bool:
    """Return whether a cell looks the same in this style: one without text, on the same background."""
    blank = not cell.text.strip() and not (style.underline or cell.style.underline)
    return blank and _colour(style, background=True) == _colour(cell.style, background=True)


def _colour(style: Style | None, *, background: bool = False) -> str:
    """Return a colour of a style as it is seen, as CSS; "" if it names none."""
    if style is None:
        return ""
    colour = style.bgcolor if background != bool(style.reverse) else style.color
    return "" if colour is None or colour.triplet is None else colour.triplet.hex


def _ground(screen: Screen) -> str:
    counted = Counter(_colour(cell.style, background=True) for row in screen for cell in row)
    return counted.most_common(1)[0][0]
