"""A film as asciicast, for asciinema and its players: version 3 (relative times), or 2 (absolute, for older ones)."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from rich.color import ColorSystem
from rich.style import Style

from ladechat.export.cells import Screen, changes
from ladechat.export.film import Frame, Size, title_of
from ladechat.session.replay import Recording
from ladechat.widgets.cells import shorten

CLEAN = "\x1b[?25l\x1b[2J\x1b[H"
"""A clear screen without a cursor, which the app's own start would have left."""
LABEL_CELLS = 80
BRIDGED = 4
"""Unchanged cells that are written once more: going over them by a position of the cursor would take as much."""
RESET = "\x1b[0m"
SHOW_CURSOR = f"{RESET}\x1b[?25h"


def cast(recording: Recording, frames: Sequence[Frame], size: Size, *, speed: float, version: int) -> str:
    """The lines of the file: a header, what changes from frame to frame, and markers where questions are asked.

    Args:
        recording: where the questions, and what was wrong with the file, are taken from.
        frames: as they were drawn.
        size: of the screen they were drawn on.
        speed: 2 is twice as fast.
        version: of asciicast, 2 or 3.
    """
    first, *others = frames
    last = others[-1].seconds if others else first.seconds
    events = [
        *((0.0, "m", shorten(notice, LABEL_CELLS)) for notice in recording.notices),
        *(
            (recording.times[turn.position], "m", shorten(" ".join(turn.question.split()), LABEL_CELLS))
            for turn in recording.turns
        ),
        (0.0, "o", CLEAN + drawn(None, first.screen)),  # a player shows it before it is started
        *((after.seconds, "o", drawn(before.screen, after.screen)) for before, after in pairwise(frames)),
        (last, "o", SHOW_CURSOR),
    ]
    events.sort(key=lambda event: event[0])  # frames and markers stay in their order
    if version == 3:
        events.append((last, "x", "0"))
    lines = [_header(recording, size, version), *_timed(events, speed, relative=version == 3)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def drawn(before: Screen | None, after: Screen) -> str:
    """What a terminal is sent that shows one screen, for it to show another."""
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
    """What makes a terminal write in a style, whatever it wrote in before."""
    return RESET + style.render("·", color_system=ColorSystem.TRUECOLOR).partition("·")[0]


def _header(recording: Recording, size: Size, version: int) -> dict[str, object]:
    title = title_of(recording)
    if version == 2:
        return {"version": 2, "width": size.columns, "height": size.rows, "title": title}
    return {"version": 3, "term": {"cols": size.columns, "rows": size.rows, "type": "xterm-256color"}, "title": title}


def _timed(events: Iterable[tuple[float, str, str]], speed: float, *, relative: bool) -> Iterable[list[object]]:
    """The events with their seconds, to the millisecond: since the beginning or, where `relative`, since the last."""
    before = 0
    for seconds, code, data in events:
        now = round(1000 * seconds / speed)
        yield [(now - before if relative else now) / 1000, code, data]
        before = now
