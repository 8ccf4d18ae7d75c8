"""Recordings to export: small, made of what an engine says, and as hostile as a recording may be."""

from pathlib import Path

import msgspec

from ladechat.protocol import Asked, ConversationCleared, Event, Failed, Step, TurnStarted
from ladechat.session.recordings.recording import Recording
from tests.session.streams import recorded, turn

HOSTILE = (
    "</p><script>alert(1)</script><!-- <img src=x onerror=alert(1)> ]]> [a](javascript:b) \x1b]0;t\x07\x1b[31m\u202e"
)


def hostile_steps(events: list[Event]) -> list[Event]:
    """With a text that would break out of every format, as a token and as its source."""
    return [
        msgspec.structs.replace(event, pieces=[HOSTILE, *event.pieces[1:]], origins=[HOSTILE, *event.origins[1:]])
        if isinstance(event, Step)
        else event
        for event in events
    ]


def two_turns(folder: Path) -> Recording:
    """Two questions with wide letters, one answer cleared away, one that never ended."""
    *second, _ = turn(2, 6)
    events = [
        Asked(turn=1, text="漢字 and Ünï?"),
        *turn(1, 12),
        ConversationCleared(),
        Asked(turn=2, text="Again?"),
        *second,
    ]
    return Recording.read(recorded(folder, *events))


def hostile(folder: Path) -> Recording:
    """Wherever a recording holds text, this one holds markup and escape sequences."""
    failed = Failed(code="internal", message=HOSTILE, hint=HOSTILE, fatal=True)
    started, *body = hostile_steps(turn(1, 5))
    assert isinstance(started, TurnStarted)
    settings = msgspec.structs.replace(started.settings, decoder=HOSTILE)
    started = msgspec.structs.replace(started, settings=settings)
    return Recording.read(recorded(folder, Asked(turn=1, text=HOSTILE), started, *body, failed))
