"""The contrast of text with its background, and changes of a theme's colours that make text readable."""

from collections.abc import Mapping
from functools import lru_cache

from rich.color import ColorSystem
from textual.color import BLACK, WHITE, Color, ColorParseError

from ladechat.palette import Depth

LEAST = 4.5
"""The least contrast of text with its background, by WCAG 2 AA."""
STEPS = 40
"""The number of steps in which a colour is moved to black or white; it is moved no further than needed."""
SURFACES = ("background", "surface", "panel")
FOOTERS = ("footer-background", "footer-key-background", "footer-description-background")
SELECTION, SELECTED_SHARE = "input-selection-background", 0.75
TEXT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("foreground", "text-primary", "text-accent", "text-error", "text-warning"), SURFACES),
    **dict.fromkeys(("footer-foreground", "footer-key-foreground", "footer-description-foreground"), FOOTERS),
    "block-cursor-foreground": ("block-cursor-background",),
    "input-cursor-foreground": ("input-cursor-background",),
    "input-selection-foreground": (SELECTION,),
}
"""The text variables of a theme, each with those of its backgrounds."""
NEARER = 0.95
"""The largest contrast of a grey surface with black or white, as a share of the original's."""
MUTED_SHARE = 0.4
"""The place of muted text between the foreground (0) and the background (1)."""
SCROLLBARS = {"scrollbar": 0.7, "scrollbar-hover": 0.5, "scrollbar-active": 0.3}
"""The same of scroll bars, on a track in the colour of the background."""
TRACKS = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two opaque colours by WCAG 2: from 1, of a colour with itself, to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Color) -> float:
    parts = [part / 255 for part in colour.rgb]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@lru_cache(maxsize=4096)
def displayed(colour: Color, depth: Depth) -> Color:
    """Return a colour as a terminal shows it: in 256 colours the one that rich takes for it, else the colour itself."""
    if depth is not Depth.EIGHT_BIT:
        return colour
    return Color(*colour.rich_color.downgrade(ColorSystem.EIGHT_BIT).get_truecolor())


@lru_cache(maxsize=256)
def readable(colour: Color, *backgrounds: Color, depth: Depth = Depth.TRUE) -> Color:
    """Return a colour that is readable on all of these: the given one, moved to black or white as far as needed.

    That always succeeds on a single background, and on several if they are similar.
    """

    def least(one: Color) -> float:
        return min(contrast(displayed(one, depth), displayed(each, depth)) for each in backgrounds)

    end = max((BLACK, WHITE), key=least)
    # Of 16 colours, none between can be relied on.
    steps = (colour.blend(end, step / STEPS, alpha=1.0) for step in range(STEPS * (depth is Depth.STANDARD), STEPS + 1))
    return next((one for one in steps if least(one) >= LEAST), end)


def readable_variables(variables: Mapping[str, str], depth: Depth = Depth.TRUE) -> dict[str, str]:
    """Return the variables of a theme, with text colours moved until they are readable in a terminal of this depth.

    In 256 colours surfaces are grey; in 16, everything is black and white with a few colours. Colours that the terminal
    defines, as in themes of its 16, stay as they are.
    """
    known = {name: parsed for name, value in variables.items() if (parsed := _opaque(value)) is not None}
    if any(name not in known for name in SURFACES):
        return dict(variables)
    dark = contrast(known["background"], WHITE) > contrast(known["background"], BLACK)
    if depth is Depth.STANDARD:
        return {**variables, **_of_16(dark)}
    changed: dict[str, Color] = {}
    if depth is Depth.EIGHT_BIT:
        changed = {
            name: _grey(known[name], BLACK if dark else WHITE) for name in (*SURFACES, *FOOTERS) if name in known
        }
        known.update(changed)
    foreground, background = (known[name] for name in ("foreground", "background"))
    known["text-muted"] = foreground.blend(background, MUTED_SHARE, alpha=1.0)
    known.setdefault("block-cursor-foreground", foreground)
    changed[SELECTION] = known[SELECTION] = foreground.blend(known["panel"], SELECTED_SHARE, alpha=1.0)
    changed |= {name: foreground.blend(background, share, alpha=1.0) for name, share in SCROLLBARS.items()}
    changed |= dict.fromkeys(TRACKS, background)
    for name, backgrounds in {**TEXT, "text-muted": SURFACES}.items():
        if name in known:
            changed[name] = readable(known[name], *(known[one] for one in backgrounds if one in known), depth=depth)
    return {**variables, **{name: colour.hex for name, colour in changed.items()}}


def _grey(colour: Color, end: Color) -> Color:
    """Return the grey that replaces a surface in 256 colours, a little nearer to `end`, which is black or white. Those
    colours have hardly any dark or pale tints: rich shows nord's background, #2e3440, as a bright #005f5f.
    """
    level = round(colour.brightness * 255)
    grey = Color(level, level, level)
    greys = (grey.blend(end, step / STEPS, alpha=1.0) for step in range(STEPS + 1))
    most = max(NEARER * contrast(colour, end), 1.0)
    return next(one for one in greys if contrast(displayed(one, Depth.EIGHT_BIT), end) <= most)


def _of_16(dark: bool) -> dict[str, str]:
    """Return variables of black and white, and of those of the 16 colours that are readable there in any terminal."""
    behind, text, muted = ("#000000", "#ffffff", "#aaaaaa") if dark else ("#ffffff", "#000000", "#000000")
    primary, accent, error = ("#55ffff", "#ffff55", "#ff5555") if dark else ("#0000aa", "#aa00aa", "#aa0000")
    swapped = [name for name, backgrounds in TEXT.items() if len(backgrounds) == 1]
    return {
        **dict.fromkeys((*TEXT, *SCROLLBARS, *(TEXT[name][0] for name in swapped)), text),
        **dict.fromkeys((*SURFACES, FOOTERS[0], *TRACKS, *swapped), behind),
        **dict.fromkeys(("text-accent", "text-warning", "footer-key-foreground"), accent),
        "text-muted": muted,
        "text-primary": primary,
        "text-error": error,
    }


def _opaque(value: str) -> Color | None:
    """Return the colour of a variable; None if it is not a colour, is not opaque, or is one of the terminal's."""
    try:
        colour = Color.parse(value)
    except ColorParseError:
        return None
    return colour if colour.a == 1 and colour.ansi is None and not colour.auto else None
