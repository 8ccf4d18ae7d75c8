"""The colours of steps, each with a cue that needs no colour, and the marks of verdicts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console
from rich.style import Style

VERDICT_MARKS = {"accepted": "✓", "rejected": "✗", "untested": "–"}
_VERDICTS = {"accepted": Style(bold=True)}


class Depth(StrEnum):
    """How many colours a terminal has, by rich's names."""

    STANDARD = "standard"
    """16, whatever the user has made of them."""

    EIGHT_BIT = "256"
    TRUE = "truecolor"

    @classmethod
    def detect(cls, environment: Mapping[str, str]) -> "Depth":
        """The depth that Textual and rich will draw in: by COLORTERM and TERM, unless TEXTUAL_COLOR_SYSTEM says it."""
        wanted = environment.get("TEXTUAL_COLOR_SYSTEM", "")
        if wanted in set(cls):
            return cls(wanted)
        found = Console(force_terminal=True, _environ=environment).color_system
        return cls(found) if found in set(cls) else cls.TRUE


# At least 4.5:1 on the darkest and the lightest surface of the app's themes (WCAG 2 AA), and in an order in which
# neighbours lie far apart for people with red-green blindness too: blue and amber first.
HUES = {
    True: ("#72b9ff", "#e3b341", "#5fd08a", "#ff95a8", "#56d4dd", "#c9a4ff"),
    False: ("#0a4f9e", "#7a4a00", "#155c2d", "#a01d42", "#085a63", "#5f33ad"),
}
_DARK = HUES[True]
_LIGHT = HUES[False]
# Brought down to 256 colours the light ones would be too light. These are in the cube of 256 as they stand.
_LIGHT_256 = ("#0000d7", "#870000", "#005f5f", "#af005f", "#005f00", "#870087")
# Of 16 colours, as rich names them, so that what is brought down is what is meant. Brought down, the hues above would
# be four. On a dark background the six bright ones; on a light one no terminal's green, yellow or cyan can be read, and
# blue, red and magenta with two cues by turns make six looks too.
_DARK_16 = ("#5555ff", "#ffff55", "#55ff55", "#ff5555", "#55ffff", "#ff55ff")
_LIGHT_16 = ("#0000aa", "#aa0000", "#aa00aa")
INKS: Mapping[tuple[Depth, bool], tuple[str, ...]] = {
    (Depth.TRUE, True): _DARK,
    (Depth.TRUE, False): _LIGHT,
    (Depth.EIGHT_BIT, True): _DARK,
    (Depth.EIGHT_BIT, False): _LIGHT_256,
    (Depth.STANDARD, True): _DARK_16,
    (Depth.STANDARD, False): _LIGHT_16,
}
"""The hues of steps, in turn: by depth, and by whether the background is dark."""


MARKUP: Mapping[str, tuple[Style, int | None]] = {
    "heading": (Style(bold=True), 0),
    "strong": (Style(bold=True), None),
    "emphasis": (Style(italic=True), None),
    "strong_emphasis": (Style(bold=True, italic=True), None),
    "struck": (Style(strike=True), None),
    "link": (Style(underline=True), 4),
    "code": (Style(), 1),
    "keyword": (Style(bold=True), 5),
    "string": (Style(), 2),
    "number": (Style(), 1),
    "name": (Style(), 0),
}
"""How formatted text looks: a cue, and the hue of a step by its number."""


class Look(StrEnum):
    """How steps are told apart."""

    HUES = "hues"
    """Each step in a hue of its own."""

    DEMO = "demo"
    """As in the method's well-known figure: blue is what came in parallel, the rest is plain."""


@dataclass(frozen=True)
class Palette:
    """Styles for one background. Without `colour` (NO_COLOR) the cues alone tell things apart."""

    dark: bool = True
    colour: bool = True
    look: Look = Look.HUES
    depth: Depth = Depth.TRUE

    @classmethod
    def detect(cls, *, dark: bool = True) -> "Palette":
        """The palette that the environment asks for: its depth, and NO_COLOR (no-color.org) is honoured."""
        return cls(dark=dark, colour=not os.environ.get("NO_COLOR"), depth=Depth.detect(os.environ))

    def step(self, index: int, tokens: int, *, own: bool = False) -> Style:
        """The style of what step `index` yielded. A step of one token looks like plain text.

        Steps of several tokens have one cue or another by turns, so that two in a row differ without colour too. The
        cue says that a token was drafted: the model's `own` next token has the hue of its step alone.
        """
        if tokens < 2:
            return Style()
        hues = INKS[self.depth, self.dark]
        hue = hues[0] if self.look is Look.DEMO else hues[index % len(hues)]
        return self._coloured(hue) if own else self._cue(index) + self._coloured(hue)

    def verdict(self, verdict: str) -> Style:
        """The style of a verdict, whose mark has a shape of its own: hues are left to steps."""
        return _VERDICTS.get(verdict, Style())

    def markup(self, kind: str) -> Style:
        """The style of a part of formatted text, by the name of its ink. Code in a line is reversed without colours."""
        if kind == "code" and not self.colour:
            return Style(reverse=True)
        hues = INKS[self.depth, self.dark]
        cue, hue = MARKUP.get(kind, (Style(), None))
        return cue if hue is None else cue + self._coloured(hues[hue % len(hues)])

    def _cue(self, index: int) -> Style:
        """Underlined, and by turns bold; where terminals draw bold in a lighter colour, too light here, reversed."""
        if index % 2 == 0:
            return Style(underline=True)
        lightens = self.colour and self.depth is Depth.STANDARD and not self.dark
        return Style(reverse=True) if lightens else Style(bold=True)

    def _coloured(self, colour: str) -> Style:
        return Style(color=colour) if self.colour else Style()
