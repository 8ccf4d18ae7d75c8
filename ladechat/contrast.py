"""The contrast of text with its background, and changes of a theme's colours that make text readable."""

from collections.abc import Mapping
from functools import lru_cache

from textual.color import BLACK, WHITE, Color, ColorParseError

LEAST = 4.5
"""The least contrast of text with its background, by WCAG 2 AA."""
STEPS = 40
"""The number of steps in which a colour is moved to black or white; it is moved no further than needed."""
SURFACES = ("background", "surface", "panel")
FOOTERS = ("footer-background", "footer-key-background", "footer-description-background")
TEXT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("foreground", "text-primary", "text-accent", "text-error"), SURFACES),
    **dict.fromkeys(("footer-foreground", "footer-key-foreground", "footer-description-foreground"), FOOTERS),
    "block-cursor-foreground": ("block-cursor-background",),
    "input-cursor-foreground": ("input-cursor-background",),
}
"""The text variables of a theme, each with those of its backgrounds."""
MUTED_SHARE = 0.4
"""The place of muted text between the foreground (0) and the background (1)."""


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two opaque colours by WCAG 2: from 1, of a colour with itself, to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    parts = [part / 255 for part in colour.rgb]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@lru_cache(maxsize=256)
def readable(colour: Color, *backgrounds: Color) -> Color:
    """Return a colour that is readable on all of these: the given one, moved to black or white as far as needed.

    That always succeeds on a single background, and on several if they are similar.
    """

    def least(one: Color) -> float:
        return min(contrast(one, each) for each in backgrounds)

    end = max((BLACK, WHITE), key=least)
    steps = (colour.blend(end, step / STEPS, alpha=1.0) for step in range(STEPS + 1))
    return next((one for one in steps if least(one) >= LEAST), end)


def readable_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a theme, with text colours moved until they are readable.

    Colours that the terminal defines, as in themes of its 16, stay as they are.
    """
    known = {name: parsed for name, value in variables.items() if (parsed := _opaque(value)) is not None}
    if any(name not in known for name in SURFACES):
        return dict(variables)
    foreground, background = (known[name] for name in ("foreground", "background"))
    known["text-muted"] = foreground.blend(background, MUTED_SHARE, alpha=1.0)
    known.setdefault("block-cursor-foreground", foreground)
    moved = {
        name: readable(known[name], *(known[one] for one in backgrounds if one in known)).hex
        for name, backgrounds in {**TEXT, "text-muted": SURFACES}.items()
        if name in known
    }
    return {**variables, **moved}


def _opaque(value: str) -> Color | None:
    """Return the colour of a variable; None if it is not a colour, is not opaque, or is one of the terminal's."""
    try:
        colour = Color.parse(value)
    except ColorParseError:
        return None
    return colour if colour.a == 1 and colour.ansi is None and not colour.auto else None
