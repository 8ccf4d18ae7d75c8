"""Reads the events of a recording part by part, and holds them. Damaged lines are skipped and reported."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, overload

from ladechat.protocol import (
    MAX_LINE_BYTES,
    VERSION,
    Asked,
    Event,
    Header,
    ProtocolError,
    TurnStarted,
    decode_event,
    read_head,
)
from ladechat.session.engine import Order

Lines = list[bytes | ProtocolError]
PART_BYTES = 1 << 20
"""The bytes read at a time: some 800 steps. The first part is read before the first frame."""
MOST_NAMED = 3
"""The number of damages that are listed one by one; of more, only the count is given."""
UNFINISHED = ProtocolError("its end is missing")
MOST_EVENTS = 250_000
"""The most events of a recording: all lines are held in memory, where 250,000 steps take 350 MB."""


class UnreadableRecording(ValueError):
    """Raised for a file that is not a recording, or that this version cannot read; the message says what to do."""


class RecordingReader:
    """Reads the events of a recording in parts: `fetch` reads one, and may wait for a disk; `decoded` decodes it. The
    file is open until all is read, or until `close`.

    Attributes:
        notices: messages about its version, if any.
        ended: whether all of it has been fetched.

    Raises:
        UnreadableRecording: it is not a recording or not a file, or of a later major version.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir() and not path.is_file():  # opening a pipe may block forever
            raise UnreadableRecording(f"{path} is a device or a pipe, not a file; write the recording into one first.")
        self.path = path
        self._file = path.open("rb")
        self._size = max(os.fstat(self._file.fileno()).st_size, 1)
        self._damage: list[str] = []
        self._order = Order(restarts=True)
        self._number = self._taken = self._bytes = 0
        self._turn_came = False
        self._expected: int | None = None
        self.ended = False
        try:
            self.notices = _check_head(path, self._file)
        except UnreadableRecording:
            self.close()
            raise
        self._lines = _lines(self._file)

    @property
    def share(self) -> float:
        """The fraction of the file that has been read, 0 to 1."""
        return min(self._bytes / self._size, 1.0)

    def close(self) -> None:
        """Close the file and read no more."""
        self.ended = True
        self._file.close()

    def fetch(self) -> Lines:
        """Return the next lines, about `PART_BYTES` in all, with an error for each that cannot be used; none at the
        end. It may wait for a disk and changes nothing else, so that it can run in a thread.

        Raises:
            OSError: they cannot be read.
        """
        lines: Lines = []
        size = PART_BYTES
        while size > 0 and not self.ended:
            line = next(self._lines, None)
            if line is None:
                self.close()
                break
            lines.append(line)
            size -= 1 if isinstance(line, ProtocolError) else len(line)
        return lines

    def decoded(self, lines: Lines) -> Iterator[tuple[bytes, Event]]:
        """Yield the events of these lines, each with its line. Unreadable and missing events are recorded as damage.

        Raises:
            UnreadableRecording: the header cannot be read.
        """
        for line in lines:
            self._number += 1
            self._bytes += 0 if isinstance(line, ProtocolError) else len(line)
            if line is UNFINISHED:
                self._damage.append("the last line is not complete and is left out")
            elif (event := self._event(line)) is not None and isinstance(line, bytes):
                if self._taken == MOST_EVENTS:
                    more = f"more than {MOST_EVENTS:,} are not shown"
                    self._damage.append(f"line {self._number} and all behind it are left out: {more}")
                    self.close()
                    return
                self._taken += 1
                self._note_gap(event)
                yield line, event

    def _event(self, line: bytes | ProtocolError) -> Event | None:
        """Return the event in a line; None if there is none, or one of a kind that this version does not know."""
        try:
            if isinstance(line, ProtocolError):
                raise line
            event = self._order.event(line)
        except ProtocolError as error:
            if self._number == 1:  # its format and version were valid
                raise UnreadableRecording(f"The header of the recording cannot be read: {error}.") from error
            self._damage.append(f"line {self._number} cannot be read and is left out ({error})")
            event = None
        if event is None:
            self._expected = None
        return event

    def _note_gap(self, event: Event) -> None:
        if isinstance(event, Header):
            self._turn_came = False
        # A recording that was started late begins with a few earlier lines: gaps count from the first turn on.
        elif self._turn_came and self._expected is not None and event.seq > self._expected:
            missing = event.seq - self._expected
            self._damage.append(f"{missing:,} of the engine's events are missing before line {self._number}")
        self._turn_came = self._turn_came or isinstance(event, Asked | TurnStarted)
        self._expected = event.seq + 1

    def damage(self) -> list[str]:
        """Return the damage so far, in sentences."""
        named = [f"In {self.path.name}, {what}." for what in self._damage[:MOST_NAMED]]
        more = len(self._damage) - MOST_NAMED
        return [*named, f"And {more:,} more such places."] if more > 0 else named


def _check_head(path: Path, file: BinaryIO) -> list[str]:
    """Check the format and version in the first line; return messages about the version, and rewind the file."""
    line = file.readline(MAX_LINE_BYTES)
    file.seek(0)
    head = read_head(line)
    if head is None:
        raise UnreadableRecording(
            f"{path} is not a recording of ladechat: its first line is no header. "
            "Give a file that was written with --record."
        )
    if not head.is_readable:
        major = VERSION.partition(".")[0]
        raise UnreadableRecording(
            f"{path} is a recording of version {head.version}, and this ladechat reads up to version {major}. "
            "Replay it with the version of ladechat that its header names."
        )
    if not line.endswith(b"\n"):
        raise UnreadableRecording(f"{path} ends within its header: it was cut off before anything was recorded.")
    if head.is_newer:
        return [f"The recording is of version {head.version}, newer than {VERSION}: what is new in it is not shown."]
    return []


def _lines(file: BinaryIO) -> Iterator[bytes | ProtocolError]:
    """Yield the lines with their line ends; for a line that cannot be used, an error."""
    while line := file.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n"):
            yield line
        elif len(line) < MAX_LINE_BYTES:
            yield UNFINISHED
        else:
            while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES)
            yield ProtocolError(f"it is longer than {MAX_LINE_BYTES // 2**20} MiB")


class StoredEvents(Sequence[Event]):
    """A sequence of events, stored as lines that were decoded once for validation, and are decoded again on access.

    A step takes 1 kB as a line, and 7 kB as objects, which Python's garbage collector would scan again and again.
    """

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def append(self, line: bytes) -> None:
        """Append a line that holds an event of a known kind."""
        self._lines.append(line)

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, place: int) -> Event: ...

    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...

    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        if isinstance(place, slice):
            return [_event(line) for line in self._lines[place]]
        return _event(self._lines[place])

    def __iter__(self) -> Iterator[Event]:
        return map(_event, self._lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)


def _event(line: bytes) -> Event:
    event = decode_event(line)
    assert event is not None
    return event
