"""A replay: the position in a recording, and the events that are due."""

from bisect import bisect_left
from dataclasses import dataclass, field

from ladechat.protocol import Event
from ladechat.session.replay import NotRead, Recording, Turn

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


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
