"""A replay: a recording read back, and where in it one is."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ladechat.protocol import Asked, Closed, Event, Header, Step, TurnStarted
from ladechat.session.reading import read_events

IDLE_SECONDS = 2.0
"""Pauses are shortened to that, unless something else is asked for."""
SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(frozen=True)
class Turn:
    """Where a question stands in a recording."""

    number: int
    position: int
    question: str


@dataclass(frozen=True)
class Recording:
    """A recording as it was read.

    Attributes:
        events: all that can be read, in order, without the closing line.
        times: seconds of each since the first, never falling.
        turns: the questions, in order.
        notices: what was wrong with the file, in sentences.
        closed: whether it was ended on purpose.
    """

    path: Path
    events: list[Event]
    times: list[float]
    turns: list[Turn]
    notices: list[str]
    closed: bool

    @classmethod
    def read(cls, path: Path, idle_limit: float | None = None) -> "Recording":
        """Read a file, leaving out what is damaged.

        Args:
            path: the file.
            idle_limit: seconds that a pause is shortened to; None leaves pauses as they were.

        Raises:
            UnreadableRecording: it is no recording, or of a later major version, or no file.
            OSError: it cannot be read.
        """
        events, notices = read_events(path)
        closed = bool(events) and isinstance(events[-1], Closed)
        events = [event for event in events if not isinstance(event, Closed)]
        if not closed:
            notices.append("The session was interrupted: the recording has no closing line.")
        return cls(path, events, _times(events, idle_limit), _turns(events), notices, closed)

    @property
    def header(self) -> Header:
        """Who wrote it, and with what."""
        first = self.events[0]
        assert isinstance(first, Header)
        return first

    @property
    def seconds(self) -> float:
        """How long it takes at its own pace."""
        return self.times[-1]


@dataclass
class Player:
    """Where in a recording one is, and what is due.

    Attributes:
        position: how many events have been shown.
        playing: whether time goes on.
    """

    recording: Recording
    playing: bool = True
    position: int = 0
    seconds: float = 0.0
    _speed: int = field(default=SPEEDS.index(1.0))
    _now: float | None = None

    @property
    def speed(self) -> float:
        """1 is the pace of the session."""
        return SPEEDS[self._speed]

    @property
    def at_end(self) -> bool:
        """Has everything been shown?"""
        return self.position == len(self.recording.events)

    @property
    def turn(self) -> Turn | None:
        """The question that was asked last."""
        return next((turn for turn in reversed(self.recording.turns) if turn.position < self.position), None)

    def due(self, now: float) -> list[Event]:
        """What is to be shown since the last call. `now` is in seconds, on any clock that does not go back."""
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
        """Faster or slower, within what there is."""
        self._speed = min(max(self._speed + steps, 0), len(SPEEDS) - 1)

    def seek(self, position: int) -> None:
        """Go where `position` events have been shown."""
        self.position = min(max(position, 0), len(self.recording.events))
        self.seconds = self.recording.times[self.position - 1] if self.position else 0.0

    def step_forward(self) -> int:
        """The position behind the next step, or at the end."""
        events = self.recording.events
        return next((i + 1 for i in range(self.position, len(events)) if isinstance(events[i], Step)), len(events))

    def step_back(self) -> int:
        """The position behind the step before the one that was shown last, or at the beginning."""
        events = self.recording.events
        steps = (i + 1 for i in range(self.position - 2, -1, -1) if isinstance(events[i], Step))
        return next((position for position in steps if position < self.position), 0)

    def behind(self, turn: int, index: int) -> int | None:
        """The position behind a step that has been shown; None if there is no such step."""
        for place in range(self.position - 1, -1, -1):
            event = self.recording.events[place]
            if isinstance(event, Step) and (event.turn, event.index) == (turn, index):
                return place + 1
        return None

    def next_turn(self) -> int:
        """The position behind the next question, or at the end."""
        later = (turn.position + 1 for turn in self.recording.turns if turn.position >= self.position)
        return next(later, len(self.recording.events))

    def previous_turn(self) -> int:
        """The position behind the question of this turn; there already, behind the one before, or at the beginning."""
        earlier = (turn.position + 1 for turn in reversed(self.recording.turns) if turn.position + 1 < self.position)
        return next(earlier, 0)

    def found(self, text: str) -> int | None:
        """The position behind the next place where a text is written, in a question or an answer; behind the last one
        the first again. None if it is nowhere. Case does not matter.
        """
        places = list(_places(self.recording.events, text.casefold()))
        later = (place for place in places if place > self.position)
        return next(later, places[0] if places else None)


def _places(events: list[Event], text: str) -> Iterator[int]:
    """The positions behind the events that ask it, or write the end of it."""
    answer = ""
    for position, event in enumerate(events, start=1):
        match event:
            case Asked():
                written = event.text.casefold()
            case TurnStarted() if not event.goes_on:
                answer = written = ""
            case Step():
                new = "".join(event.pieces).casefold()
                written = answer[len(answer) - min(len(text) - 1, len(answer)) :] + new
                answer += new
            case _:
                continue
        if text and text in written:
            yield position


def _times(events: list[Event], idle_limit: float | None) -> list[float]:
    """Seconds of each event since the first. An engine started anew begins at 0 again; its header says when."""
    times: list[float] = []
    offset, began = 0.0, None
    last = now = 0.0
    for event in events:
        if isinstance(event, Header):
            started = _wall_clock(event.started)
            began = began or started
            offset = max((started - began).total_seconds() if started and began else last, last)
        last, before = max(offset + event.t, last), last
        now += last - before if idle_limit is None else min(last - before, idle_limit)
        times.append(now)
    return times


def _wall_clock(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        return None


def _turns(events: list[Event]) -> list[Turn]:
    """The questions. In a stream that a program wrote down by itself, where none is marked, those of its prompts."""
    asked = [(i, event.text) for i, event in enumerate(events) if isinstance(event, Asked)]
    if not asked:
        begun = [(i, event) for i, event in enumerate(events) if isinstance(event, TurnStarted)]
        asked = [(i, event.question) for i, event in begun if not event.goes_on]
    return [Turn(number, position, question) for number, (position, question) in enumerate(asked, start=1)]
