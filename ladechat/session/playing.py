"""What is played: a recording, or the lanes of a race, at a speed that can be changed, and step by step."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import StrEnum
from itertools import accumulate

from ladechat.protocol import Event
from ladechat.session.race import Lane
from ladechat.session.recordings.recording import Recording, Turn

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
PASSES_PER_SECOND = 8.0
"""The clock of passes at speed 1: slow enough to see each pass."""
SECONDS_TO_WATCH = 8.0
"""On the clock of seconds, a race starts at the highest speed, up to 1, at which it takes this long."""


class Playback:
    """Something that runs along a clock, or is paused.

    Attributes:
        playing: whether the clock is running.
    """

    def __init__(self) -> None:
        self.playing = True
        self._place = SPEEDS.index(1.0)
        self._now: float | None = None

    @property
    def speed(self) -> float:
        """The speed as a multiple of its own pace."""
        return SPEEDS[self._place]

    def change_speed(self, steps: int) -> None:
        """Change the speed by some places in the table of speeds, within its range."""
        self._place = min(max(self._place + steps, 0), len(SPEEDS) - 1)

    def _passed(self, now: float) -> float:
        """Return the seconds since the last call, times the speed. `now` is in seconds, on any monotonic clock."""
        passed, self._now = now - (self._now if self._now is not None else now), now
        return passed * self.speed


class NotRead(Exception):
    """Raised when an answer depends on a part of the recording that has not been read yet."""


class Player(Playback):
    """The position in a recording, and the events that are due.

    Attributes:
        position: the number of events shown.
        seconds: the time in the recording.
    """

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording
        self.position = 0
        self.seconds = 0.0

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
        passed = self._passed(now)
        if not self.playing:
            return []
        self.seconds = min(self.seconds + passed, self.recording.seconds)
        times, start = self.recording.times, self.position
        while self.position < len(times) and times[self.position] <= self.seconds:
            self.position += 1
        self.playing = not self.at_end
        return self.recording.events[start : self.position]

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


class Clock(StrEnum):
    """The clock on which the steps of the lanes are shown."""

    PASSES = "passes"
    """Each step takes one tick, as on a machine with spare compute, where a pass over many slots costs no more."""

    SECONDS = "seconds"
    """Each step takes its measured time on this machine."""


class Track(Playback):
    """The position in a race whose lanes are measured. All start at zero and run along one clock.

    Attributes:
        clock: see `Clock`.
        at: the position, in passes or seconds.
        speed: 1 is the pace of this machine on the clock of seconds, `PASSES_PER_SECOND` on that of passes.
    """

    def __init__(self, lanes: Sequence[Lane]) -> None:
        super().__init__()
        self.clock = Clock.PASSES
        self.at = 0.0
        self._times = {
            Clock.PASSES: [[float(number) for number in range(1, len(lane.steps) + 1)] for lane in lanes],
            Clock.SECONDS: [list(accumulate(step.timing.step_ms / 1000 for step in lane.steps)) for lane in lanes],
        }
        whole = self._end(Clock.SECONDS)
        slow = [place for place, speed in enumerate(SPEEDS) if speed <= 1 and whole / speed >= SECONDS_TO_WATCH]
        self._place_on_other_clock = max(slow, default=0)

    @property
    def end(self) -> float:
        """The time at which the last lane ends."""
        return self._end(self.clock)

    @property
    def at_end(self) -> bool:
        """Whether all lanes have ended."""
        return self.at >= self.end

    def steps_done(self, lane: int) -> int:
        """Return the number of a lane's steps that are done."""
        return bisect_right(self._times[self.clock][lane], self.at)

    def finished_at(self, lane: int) -> float:
        """Return the time at which a lane ends."""
        return max(self._times[self.clock][lane], default=0.0)

    def advance(self, now: float) -> None:
        """Advance the clock since the last call. `now` is in seconds, on any monotonic clock."""
        passed = self._passed(now)
        if self.playing:
            pace = PASSES_PER_SECOND if self.clock is Clock.PASSES else 1.0
            self.at = min(self.at + passed * pace, self.end)
            self.playing = not self.at_end

    def seek(self, at: float) -> None:
        """Move to a time, and pause there."""
        self.at = min(max(at, 0.0), self.end)
        self.playing = False

    def step_forward(self) -> None:
        """Move to the end of the next step of any lane."""
        self.seek(min((time for time in self._moments() if time > self.at), default=self.end))

    def step_back(self) -> None:
        """Move to the end of the step before the last one, or to the start."""
        latest = max((time for time in self._moments() if time <= self.at), default=0.0)
        self.seek(max((time for time in self._moments() if time < latest), default=0.0))

    def restart(self) -> None:
        """Move to the start and play."""
        self.at, self.playing = 0.0, True

    def change_clock(self) -> None:
        """Switch to the other clock, at the same fraction of the whole."""
        share = self.at / self.end if self.end else 1.0
        self.clock = Clock.SECONDS if self.clock is Clock.PASSES else Clock.PASSES
        self._place, self._place_on_other_clock = self._place_on_other_clock, self._place
        self.at = self.end if share >= 1 else share * self.end

    def time_of(self, lane: int, step: int) -> float:
        """Return the time at which a lane has done this number of steps."""
        return self._times[self.clock][lane][step - 1] if step else 0.0

    def _moments(self) -> set[float]:
        return {time for times in self._times[self.clock] for time in times}

    def _end(self, clock: Clock) -> float:
        return max((time for times in self._times[clock] for time in times), default=0.0)
