"""A recording that is read part by part, with the times of its events and the places of its questions."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ladechat.protocol import Asked, Closed, Event, Header, Step, TurnStarted
from ladechat.session.recordings.reading import Lines, RecordingReader, StoredEvents

IDLE_SECONDS = 2.0
"""Pauses are shortened to this, unless another limit is requested."""


@dataclass(frozen=True)
class Turn:
    """The position of a question in a recording."""

    number: int
    position: int
    question: str


class RecordingClock:
    """The clock of a recording: seconds since the first event, with pauses shortened to `idle_limit`, if there is one.
    A restarted engine begins at 0 again; its header has the time.
    """

    def __init__(self, idle_limit: float | None) -> None:
        self._idle_limit = idle_limit
        self._offset = self._last = self._now = 0.0
        self._began: datetime | None = None

    def time_of(self, event: Event) -> float:
        """Return the time of the next event; never before that of the previous one."""
        if isinstance(event, Header):
            started = _wall_clock(event.started)
            self._began = self._began or started
            passed = (started - self._began).total_seconds() if started and self._began else self._last
            self._offset = max(passed, self._last)
        last, before = max(self._offset + event.t, self._last), self._last
        pause = last - before
        self._last = last
        self._now += pause if self._idle_limit is None else min(pause, self._idle_limit)
        return self._now


class Recording(RecordingReader):
    """A recording, as far as it has been read. Its content only grows. See `RecordingReader`.

    Attributes:
        events: all readable events in order, without the closing line.
        times: each event's time since the first, in seconds, never decreasing.
        steps_before: for each number n of events, the number of steps among the first n.
        notices: what was wrong with the file, in sentences.
        complete: whether all of it has been read.
        closed: whether it was ended on purpose; known once it is complete.
    """

    def __init__(self, path: Path, idle_limit: float | None = None) -> None:
        super().__init__(path)
        self.events = StoredEvents()
        self.times: list[float] = []
        self.steps_before = [0]
        self.complete = self.closed = False
        self._clock = RecordingClock(idle_limit)
        self._asked: list[Turn] = []
        self._begun: list[Turn] = []
        self._texts: list[tuple[int, str, bool]] = []
        self._step_places: list[tuple[int, int] | None] = []
        try:
            self.take(self.fetch())
            if self.ended:
                self.take([])
        except BaseException:
            self.close()
            raise

    @classmethod
    def read(cls, path: Path, idle_limit: float | None = None) -> "Recording":
        """Read a whole file, without what is damaged; see `RecordingReader`."""
        recording = cls(path, idle_limit)
        while not recording.complete:
            recording.take(recording.fetch())
        return recording

    # --- reading ------------------------------------------------------------------------------------------------------

    def take(self, lines: Lines) -> None:
        """Add the events of fetched lines; no lines mean that all has been read."""
        for line, event in self.decoded(lines):
            self.closed = isinstance(event, Closed)
            if not self.closed:
                self._add(line, event)
        if not lines:
            self._finish()

    def break_off(self, error: OSError) -> None:
        """End the recording where the rest of it cannot be read, with a notice."""
        self.close()
        self._finish()
        self.notices.append(f"The rest of {self.path.name} cannot be read: {error.strerror or error}.")

    def _finish(self) -> None:
        self.complete = True
        self.notices += self.damage()
        if not self.closed:
            self.notices.append("The session was interrupted: the recording has no closing line.")

    def _add(self, line: bytes, event: Event) -> None:
        position = len(self.events)
        self.events.append(line)
        self.times.append(self._clock.time_of(event))
        self.steps_before.append(self.steps_before[-1] + isinstance(event, Step))
        self._step_places.append((event.turn, event.index) if isinstance(event, Step) else None)
        match event:
            case Asked():
                self._asked.append(Turn(len(self._asked) + 1, position, event.text))
                self._texts.append((position + 1, event.text, True))
            case TurnStarted() if not event.goes_on:
                self._begun.append(Turn(len(self._begun) + 1, position, event.question))
                self._texts.append((position + 1, "", True))
            case Step():
                self._texts.append((position + 1, "".join(event.pieces), False))

    # --- queries ------------------------------------------------------------------------------------------------------

    @property
    def header(self) -> Header:
        """The header, with the program and versions that wrote it."""
        first = self.events[0]
        assert isinstance(first, Header)
        return first

    @property
    def turns(self) -> list[Turn]:
        """The questions, in order. In a stream that a program wrote without marking them, those of its prompts."""
        return self._asked or self._begun

    @property
    def seconds(self) -> float:
        """The duration at its own pace, as far as it has been read."""
        return self.times[-1]

    @property
    def share(self) -> float:
        """The fraction of the file that has been read, 0 to 1."""
        return 1.0 if self.complete else super().share

    def step_at(self, place: int) -> tuple[int, int] | None:
        """Return the turn and index of the step at a place; None if that event is not a step."""
        return self._step_places[place]

    def places(self, text: str) -> Iterator[int]:
        """Yield the positions after each occurrence of a text, in a question or an answer, ignoring case."""
        wanted = text.casefold()
        before = ""
        for position, new, begins in self._texts:
            written = (new if begins else before + new).casefold()
            if wanted and wanted in written:
                yield position
            before = "" if begins else written[len(written) - min(len(wanted) - 1, len(written)) :]


def _wall_clock(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None
