"""The colours of steps, sources and verdicts, each with a cue that needs no colour. Used by widgets, ask and export."""

import os
from dataclasses import dataclass
from enum import StrEnum

from rich.style import Style

VERDICT_MARKS = {"accepted": "✓", "rejected": "✗", "untested": "·"}

# At least 4.5:1 on the darkest and the lightest surface of the app's themes (WCAG 2 AA), and in an order in which
# neighbours lie far apart for people with red-green blindness too: blue and amber first.
HUES = {
    True: ("#6cb6ff", "#e3b341", "#5fd08a", "#ff95a8", "#56d4dd", "#c9a4ff"),
    False: ("#0a4f9e", "#7a4a00", "#155c2d", "#a01d42", "#085a63", "#5f33ad"),
}
PARALLEL = {True: "#6cb6ff", False: "#0a4f9e"}
SOURCES = {
    True: {"window": "#56d4dd", "prompt": "#e3b341", "accepted": "#c9a4ff"},
    False: {"window": "#085a63", "prompt": "#7a4a00", "accepted": "#5f33ad"},
}
VERDICTS = {
    True: {"accepted": "#5fd08a", "rejected": "#ff95a8"},
    False: {"accepted": "#155c2d", "rejected": "#a01d42"},
}


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

    @classmethod
    def detect(cls, *, dark: bool = True) -> "Palette":
        """The palette that the environment asks for: NO_COLOR is honoured (no-color.org)."""
        return cls(dark=dark, colour=not os.environ.get("NO_COLOR"))

    def step(self, index: int, tokens: int) -> Style:
        """The style of what step `index` yielded. A step of one token looks like plain text.

        Steps of several tokens are underlined and bold by turns, so that two in a row differ without colour too.
        """
        if tokens < 2:
            return Style()
        cue = Style(underline=True) if index % 2 == 0 else Style(bold=True)
        if self.look is Look.DEMO:
            return cue + self._coloured(PARALLEL[self.dark])
        hues = HUES[self.dark]
        return cue + self._coloured(hues[index % len(hues)])

    def source(self, source: str) -> Style:
        """The style of a source of n-grams; the model's own tokens are plain."""
        return self._coloured(SOURCES[self.dark].get(source))

    def verdict(self, verdict: str) -> Style:
        """The style of a verdict; what was never judged is dim."""
        colour = VERDICTS[self.dark].get(verdict)
        return Style(dim=True) if colour is None else self._coloured(colour)

    def _coloured(self, colour: str | None) -> Style:
        return Style(color=colour) if colour and self.colour else Style()
