"""Writes a film as asciicast for asciinema: version 3 (relative times), or 2 (absolute times, for older players)."""

import json
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from rich.color import ColorSystem
from rich.style import Style

from ladechat.export.cells import Screen, changes
from ladechat.export.film import Reel

CLEAN = "\x1b[?25l\x1b[2J\x1b[H"
"""A clear screen without a cursor, as after the app's own start."""
BRIDGED = 4
"""How many unchanged cells are rewritten: skipping them with a cursor position would take as many bytes."""
RESET = "\x1b[0m"
SHOW_CURSOR = f"{RESET}\x1b[?25h"


def cast(reel: Reel, *, speed: float, version: int) -> str:
    """Return the lines of the file, of asciicast version 2 or 3: a header, the changes from frame to frame, and
    markers. A speed of 2 is twice as fast.
    """
    first, *others = reel.frames
    last = others[-1].seconds if others else first.seconds
    events = [
        *((seconds, "m", text) for seconds, text in reel.markers),
        (0.0, "o", CLEAN + drawn(None, first.screen)),  # a player shows it before it is started
        *((after.seconds, "o", drawn(before.screen, after.screen)) for before, after in pairwise(reel.frames)),
        (last, "o", SHOW_CURSOR),
    ]
    events.sort(key=lambda event: event[0])  # a stable sort: frames and markers keep their order
    if version == 3:
        events.append((last, "x", "0"))
    lines = [_header(reel, version), *_timed(events, speed, relative=version == 3)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def drawn(before: Screen | None, after: Screen) -> str:
    """Return the terminal output that turns one screen into another."""
    parts: list[str] = []
    style: Style | None = None
    for span in changes(before, after, BRIDGED):
        parts.append(f"\x1b[{span.y + 1};{span.x + 1}H")
        for cell in span.cells:
            if cell.style != style:
                style = cell.style
                parts.append(_switched_to(style))
            parts.append(cell.text)
    return "".join(parts)


@lru_cache(maxsize=4096)
def _switched_to(style: Style) -> str:
    """Return the escape sequence for a style, whatever style was active before."""
    return RESET + style.render("·", color_system=ColorSystem.TRUECOLOR).partition("·")[0]


def _header(reel: Reel, version: int) -> dict[str, object]:
    columns, rows = reel.size
    if version == 2:
        return {"version": 2, "width": columns, "height": rows, "title": reel.title}
    return {"version": 3, "term": {"cols": columns, "rows": rows, "type": "xterm-256color"}, "title": reel.title}


def _timed(events: Iterable[tuple[float, str, str]], speed: float, *, relative: bool) -> Iterable[list[object]]:
    """Yield the events with their seconds, rounded to ms: since the start or, if `relative`, since the last event."""
    before = 0
    for seconds, code, data in events:
        now = round(1000 * seconds / speed)
        yield [(now - before if relative else now) / 1000, code, data]
        before = now
