"""A film as asciicast, for asciinema and its players: version 3 (relative times), or 2 (absolute, for older ones)."""

import json
from collections.abc import Iterable, Sequence

from ladechat.export.film import Frame, Size, title_of
from ladechat.session.replay import Recording
from ladechat.widgets.cells import shorten

CLEAN = "\x1b[?25l\x1b[2J\x1b[H"
"""A clear screen without a cursor, which the app's own start would have left."""
LABEL_CELLS = 80
SHOW_CURSOR = "\x1b[?25h"


def cast(recording: Recording, frames: Sequence[Frame], size: Size, *, speed: float, version: int) -> str:
    """The lines of the file: a header, the frames, and markers where questions are asked.

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
        (0.0, "o", CLEAN + first.output),  # a player shows it before it is started
        *((frame.seconds, "o", frame.output) for frame in others),
        (last, "o", SHOW_CURSOR),
    ]
    events.sort(key=lambda event: event[0])  # frames and markers stay in their order
    if version == 3:
        events.append((last, "x", "0"))
    lines = [_header(recording, size, version), *_timed(events, speed, relative=version == 3)]
    return "".join(json.dumps(line) + "\n" for line in lines)


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
