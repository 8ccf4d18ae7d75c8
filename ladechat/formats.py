"""The formats to which a recording or a race can be exported."""

from pathlib import Path

FORMATS = ("cast", "cast2", "gif", "html", "svg", "md", "json")
"""The names of the formats; except for `cast2` they are also the suffixes of file names."""
FILMS = ("cast", "cast2", "gif")
OF_A_RACE = ("cast", "gif", "html", "svg")
ENDINGS = "in .cast, .gif, .html, .svg, .md or .json"
ONE_FILE = 'One file is made: put a name with spaces between quotation marks, as in "a b.html".'
SIZE = (120, 36)
"""The default size of the screen, in columns and rows."""


def ending(out: Path) -> str:
    """Return the format that a file's suffix names; "" if it has none."""
    return out.suffix.lower().removeprefix(".")
