"""What can be made of a recording or of a race, by the names of the formats."""

from pathlib import Path

FORMATS = ("cast", "cast2", "gif", "html", "svg", "md", "json")
"""The formats, by their names; those but `cast2` are also how a file's name ends."""
FILMS = ("cast", "cast2", "gif")
OF_A_RACE = ("cast", "gif", "svg")
ENDINGS = "in .cast, .gif, .html, .svg, .md or .json"
ONE_FILE = 'One file is made: put a name with spaces between quotation marks, as in "a b.html".'
SIZE = (120, 36)
"""Columns and rows of the screen, unless another is asked for."""


def ending(out: Path) -> str:
    """The format that the name of a file says, if it says one."""
    return out.suffix.lower().removeprefix(".")
