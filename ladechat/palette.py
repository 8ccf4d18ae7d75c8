"""The colours of steps, each with a cue that does not rely on colour, and the marks of verdicts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console
from rich.style import Style

VERDICT_MARKS = {"accepted": "✓", "rejected": "✗", "untested": "–"}
VERDICT_WORDS = {"accepted": "accepted", "rejected": "wrong", "untested": "not reached"}
"""The only words for verdicts on the screen. A guess without room in its pass has none of these: it was not tried."""
_VERDICTS = {"accepted": Style(bold=True)}


class Depth(StrEnum):
    """The color system of a terminal, by rich's names."""

    STANDARD = "standard"
    """16 colours, which the user may have redefined."""

    EIGHT_BIT = "256"
    TRUE = "truecolor"

    @classmethod
    def detect(cls, environment: Mapping[str, str]) -> "Depth":
        """Return the depth that Textual and rich will use, by TEXTUAL_COLOR_SYSTEM or else COLORTERM and TERM."""
        wanted = environment.get("TEXTUAL_COLOR_SYSTEM", "")
        if wanted in set(cls):
            return cls(wanted)
        found = Console(force_terminal=True, _environ=environment).color_system
        return cls(found) if found in set(cls) else cls.TRUE


# At least 4.5:1 on the darkest and the lightest surface of the app's themes (WCAG 2 AA), in an order in which
# neighbours also differ for people with red-green blindness: blue and amber first.
HUES = {
    True: ("#72b9ff", "#e3b341", "#5fd08a", "#ff95a8", "#56d4dd", "#c9a4ff"),
    False: ("#0a4f9e", "#7a4a00", "#155c2d", "#a01d42", "#085a63", "#5f33ad"),
}
# Reduced to 256 colours, the light ones would be too light. These are exact colours of the cube of 256.
_LIGHT_256 = ("#0000d7", "#870000", "#005f5f", "#af005f", "#005f00", "#870087")
# Colours of the 16, with rich's values, so that reducing them gives these colours; the hues above would be reduced to
# four. On a dark background: the bright ones but blue, which no terminal has light enough; with alternating cues they
# give ten looks. On a light one, no terminal's green, yellow or cyan is readable; blue, red and magenta give six.
_DARK_16 = ("#55ffff", "#ffff55", "#55ff55", "#ff5555", "#ff55ff")
_LIGHT_16 = ("#0000aa", "#aa0000", "#aa00aa")
HUES_ON: Mapping[tuple[Depth, bool], tuple[str, ...]] = {
    (Depth.TRUE, True): HUES[True],
    (Depth.TRUE, False): HUES[False],
    (Depth.EIGHT_BIT, True): HUES[True],
    (Depth.EIGHT_BIT, False): _LIGHT_256,
    (Depth.STANDARD, True): _DARK_16,
    (Depth.STANDARD, False): _LIGHT_16,
}
"""The hues of steps, in turn: by depth, and whether the background is dark."""


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
"""The look of formatted text: a cue, and the index of a step's hue."""


class Look(StrEnum):
    """The ways to distinguish steps."""

    HUES = "hues"
    """A hue for each step."""

    DEMO = "demo"
    """As in the method's well-known figure: tokens of a pass that gave several are blue, the rest is plain."""


@dataclass(frozen=True)
class Palette:
    """Styles for one background. Without `colour` (NO_COLOR), only the cues distinguish things."""

    dark: bool = True
    colour: bool = True
    look: Look = Look.HUES
    depth: Depth = Depth.TRUE

    @classmethod
    def detect(cls, *, dark: bool = True) -> "Palette":
        """Return the palette for the environment: its color depth, and whether NO_COLOR is set (no-color.org)."""
        return cls(dark=dark, colour=not os.environ.get("NO_COLOR"), depth=Depth.detect(os.environ))

    @property
    def marked(self) -> str:
        """What a legend calls the tokens of a step."""
        return "coloured" if self.colour else "marked"

    def style_of_step(self, index: int, tokens: int, *, own: bool = False) -> Style:
        """Return the style of the tokens of step `index`. A step of one token looks like plain text.

        Steps of several tokens alternate between two cues, so that two in a row differ without colour too. The cue
        marks drafted tokens: the model's `own` next token has only the hue of its step. All `tokens` that the step
        emitted count, also one without text, such as the end token.
        """
        if tokens < 2:
            return Style()
        hues = HUES_ON[self.depth, self.dark]
        hue = hues[0] if self.look is Look.DEMO else hues[index % len(hues)]
        return self._coloured(hue) if own else self._cue(index) + self._coloured(hue)

    def verdict(self, verdict: str) -> Style:
        """Return the style of a verdict, whose mark has a shape of its own: hues are for steps."""
        return _VERDICTS.get(verdict, Style())

    def markup(self, kind: str) -> Style:
        """Return the style of a part of formatted text, by its kind. Inline code is reversed without colours."""
        if kind == "code" and not self.colour:
            return Style(reverse=True)
        hues = HUES_ON[self.depth, self.dark]
        cue, hue = MARKUP.get(kind, (Style(), None))
        return cue if hue is None else cue + self._coloured(hues[hue % len(hues)])

    def _cue(self, index: int) -> Style:
        """Return underlined and bold by turns; where a terminal shows bold too light to read, reversed."""
        if index % 2 == 0:
            return Style(underline=True)
        lightens = self.colour and self.depth is Depth.STANDARD and not self.dark
        return Style(reverse=True) if lightens else Style(bold=True)

    def _coloured(self, colour: str) -> Style:
        return Style(color=colour) if self.colour else Style()
