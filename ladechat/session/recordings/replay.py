"""A replay: a recording that is read part by part, and the position in it."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ladechat.protocol import Asked, Closed, Event, Header, Step, TurnStarted
from ladechat.session.recordings.reading import Lines, RecordingReader, StoredEvents

IDLE_SECONDS = 2.0
"""Pauses are shortened to this, unless another limit is requested."""
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class Turn:
    """The position of a question in a recording."""

    number: int
    position: int
    question: str


class RecordingClock:
    """The clock of a recording: seconds since the first event. A restarted engine begins at 0 again; its header has the
    time.

    Args:
        idle_limit: the length to which pauses are shortened, in seconds; None: pauses stay as they are.
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


class NotRead(Exception):
    """Raised when an answer depends on a part of the recording that has not been read yet."""


class Recording(RecordingReader):
    """A recording, as far as it has been read. Its content only grows.

    Args:
        path: the file.
        idle_limit: the length to which pauses are shortened, in seconds; None: pauses stay as they are.

    Attributes:
        path: the file.
        events: all readable events in order, without the closing line.
        times: each event's time since the first, in seconds, never decreasing.
        steps_before: for each number n of events, the number of steps among the first n.
        notices: what was wrong with the file, in sentences.
        complete: whether all of it has been read.
        closed: whether it was ended on purpose; known once it is complete.

    Raises:
        UnreadableRecording: it is not a recording or not a file, or of a later major version.
        OSError: it cannot be read.
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
        """Read a whole file, without what is damaged.

        Raises:
            UnreadableRecording: it is not a recording or not a file, or of a later major version.
            OSError: it cannot be read.
        """
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


@dataclass
class Player:
    """The position in a recording, and the events that are due.

    Attributes:
        position: the number of events shown.
        playing: whether the clock is running.
    """

    recording: Recording
    playing: bool = True
    position: int = 0
    seconds: float = 0.0
    _speed: int = field(default=SPEEDS.index(1.0))
    _now: float | None = None

    @property
    def speed(self) -> float:
        """The speed as a multiple of the session's own pace."""
        return SPEEDS[self._speed]

    @property
    def at_end(self) -> bool:
        """Whether all events have been shown; False until the recording has been read to its end."""
        return self.recording.complete and self.position == len(self.recording.events)

    @property
    def fraction(self) -> float:
        """The progress, 0 to 1: the fraction of events shown, of the part of the recording that has been read."""
        return self.recording.share * self.position / len(self.recording.events)

    @property
    def turn(self) -> Turn | None:
        """The last question that was asked."""
        turns = self.recording.turns
        asked = bisect_left(turns, self.position, key=lambda turn: turn.position)
        return turns[asked - 1] if asked else None

    def due(self, now: float) -> list[Event]:
        """Return the events to show since the last call. `now` is in seconds, on any monotonic clock."""
        passed, self._now = now - (self._now if self._now is not None else now), now
        if not self.playing:
            return []
        self.seconds = min(self.seconds + passed * self.speed, self.recording.seconds)
        times, start = self.recording.times, self.position
        while self.position < len(times) and times[self.position] <= self.seconds:
            self.position += 1
        self.playing = not self.at_end
        return self.recording.events[start : self.position]

    def change_speed(self, steps: int) -> None:
        """Change the speed by some places in the table of speeds, within its range."""
        self._speed = min(max(self._speed + steps, 0), len(SPEEDS) - 1)

    def seek(self, position: int) -> None:
        """Move to where `position` events have been shown."""
        self.position = min(max(position, 0), len(self.recording.events))
        self.seconds = self.recording.times[self.position - 1] if self.position else 0.0

    def end(self) -> int:
        """Return the position at the end.

        Raises:
            NotRead: it has not been read yet.
        """
        if not self.recording.complete:
            raise NotRead
        return len(self.recording.events)

    def place_at(self, fraction: float) -> int:
        """Return the position at a fraction of the whole, 0 to 1.

        Raises:
            NotRead: it has not been read yet.
        """
        share = self.recording.share
        if fraction > share:
            raise NotRead
        return round(fraction / share * len(self.recording.events))

    def step_forward(self) -> int:
        """Return the position after the next step, or at the end.

        Raises:
            NotRead: it has not been read yet.
        """
        steps = self.recording.steps_before
        later = bisect_left(steps, steps[self.position] + 1, self.position)
        return later if later < len(steps) else self.end()

    def step_back(self) -> int:
        """Return the position after the step before the last one shown, or at the beginning."""
        steps = self.recording.steps_before
        return bisect_left(steps, steps[max(self.position - 1, 0)]) if self.position > 1 else 0

    def behind(self, turn: int, index: int) -> int | None:
        """Return the position after a step that has been shown; None if there is no such step."""
        for place in range(self.position - 1, -1, -1):
            if self.recording.step_at(place) == (turn, index):
                return place + 1
        return None

    def next_turn(self) -> int:
        """Return the position after the next question, or at the end.

        Raises:
            NotRead: it has not been read yet.
        """
        later = (turn.position + 1 for turn in self.recording.turns if turn.position >= self.position)
        found = next(later, None)
        return self.end() if found is None else found

    def previous_turn(self) -> int:
        """Return the position after this turn's question; if already there, after the one before, or the start."""
        earlier = (turn.position + 1 for turn in reversed(self.recording.turns) if turn.position + 1 < self.position)
        return next(earlier, 0)

    def found(self, text: str) -> int | None:
        """Return the position after the next occurrence of a text, in a question or an answer; after the last one, the
        first again. None if there is none. Case is ignored.

        Raises:
            NotRead: not all has been read yet.
        """
        self.end()
        first = None
        for place in self.recording.places(text):
            if place > self.position:
                return place
            first = first or place
        return first
