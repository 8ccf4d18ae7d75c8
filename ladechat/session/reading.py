"""Reads the events of a recording back. What is damaged is left out, and named."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from ladechat.protocol import FORMAT, MAX_LINE_BYTES, VERSION, Asked, Event, Header, ProtocolError, TurnStarted
from ladechat.session.order import Order

MOST_NAMED = 3
"""Damages that are named one by one; of more, only the number is given."""
UNFINISHED = ProtocolError("its end is missing")
MOST_EVENTS = 250_000
"""Of a recording: all of them are held in memory, where a quarter of a million steps take up to 2 GB."""


class UnreadableRecording(ValueError):
    """A file that is no recording, or one that this version cannot read; the sentence says which, and what to do."""


class _Head(msgspec.Struct):
    """The part of a header that never changes its form, whatever the version."""

    event: str
    format: str
    version: str


def read_events(path: Path) -> tuple[list[Event], list[str]]:
    """The events of a recording, its header first, and what was wrong with it, in sentences.

    Raises:
        UnreadableRecording: it is no recording, or of a later major version, or no file.
        OSError: it cannot be read.
    """
    if path.exists() and not path.is_dir() and not path.is_file():  # opening a pipe may wait for ever
        raise UnreadableRecording(f"{path} is a device or a pipe, not a file; write the recording into one first.")
    damage: list[str] = []
    with path.open("rb") as file:
        notices = _check_head(path, file)
        events = _events(file, damage)
    notices += [f"In {path.name}, {what}." for what in damage[:MOST_NAMED]]
    if len(damage) > MOST_NAMED:
        notices.append(f"And {len(damage) - MOST_NAMED:,} more such places.")
    return events, notices


def _check_head(path: Path, file: BinaryIO) -> list[str]:
    """What is to be said about the version, if anything. The file is then at its beginning again."""
    line = file.readline(MAX_LINE_BYTES)
    file.seek(0)
    try:
        head = msgspec.json.decode(line, type=_Head)
        major, minor = (int(part) for part in head.version.split("."))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
        head = None
    if head is None or (head.event, head.format) != ("header", FORMAT):
        raise UnreadableRecording(
            f"{path} is not a recording of ladechat: its first line is no header. "
            "Give a file that was written with --record."
        )
    own_major, own_minor = (int(part) for part in VERSION.split("."))
    if major > own_major:
        raise UnreadableRecording(
            f"{path} is a recording of version {head.version}, and this ladechat reads up to version {own_major}. "
            "Replay it with the version of ladechat that its header names."
        )
    if not line.endswith(b"\n"):
        raise UnreadableRecording(f"{path} ends within its header: it was cut off before anything was recorded.")
    if major == own_major and minor > own_minor:
        return [f"The recording is of version {head.version}, newer than {VERSION}: what is new in it is not shown."]
    return []


def _lines(file: BinaryIO) -> Iterator[bytes | ProtocolError]:
    """The lines with their ends; in the place of one that cannot be used, what is wrong with it."""
    while line := file.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n"):
            yield line
        elif len(line) < MAX_LINE_BYTES:
            yield UNFINISHED
        else:
            while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)
            yield ProtocolError(f"it is longer than {MAX_LINE_BYTES // 2**20} MiB")


def _events(file: BinaryIO, damage: list[str]) -> list[Event]:
    """The events of all lines; what cannot be read, or is missing, is added to `damage`."""
    events: list[Event] = []
    order = Order(restarts=True)
    begun = False
    expected: int | None = None
    for number, line in enumerate(_lines(file), start=1):
        if line is UNFINISHED:
            damage.append("the last line is not complete and is left out")
            break
        try:
            if isinstance(line, ProtocolError):
                raise line
            event = order.event(line)
        except ProtocolError as error:
            if number == 1:  # its format and version were right
                raise UnreadableRecording(f"The header of the recording cannot be read: {error}.") from error
            damage.append(f"line {number} cannot be read and is left out ({error})")
            expected = None
            continue
        if event is None:
            expected = None  # a kind that this version does not know
            continue
        if len(events) == MOST_EVENTS:
            damage.append(f"line {number} and all behind it are left out: more than {MOST_EVENTS:,} are not shown")
            break
        if isinstance(event, Header):
            begun = False
        # A recording that was switched on late begins with a few lines from before: gaps count from the first turn on.
        elif begun and expected is not None and event.seq > expected:
            damage.append(f"{event.seq - expected:,} of the engine's events are missing before line {number}")
        begun = begun or isinstance(event, Asked | TurnStarted)
        expected = event.seq + 1
        events.append(event)
    return events
