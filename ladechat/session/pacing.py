"""Spreads bursts of steps over frames: no event is dropped, and their order is kept."""

import math
from collections import deque

from ladechat.protocol import Event, Step

SMOOTHED_FRAMES = 15
"""A burst is spread over about this many frames, so the screen is hardly ever half a second behind."""


class Pacer:
    """A queue of events that is emptied frame by frame.

    Attributes:
        frames_per_step: 0 shows steps as they come, spreading bursts; n > 0 is slow motion, one step every n frames.
    """

    def __init__(self) -> None:
        self.frames_per_step = 0
        self._events: deque[Event] = deque()
        self._waiting_steps = 0
        self._frames_since_step = 0

    def put(self, event: Event) -> None:
        """Queue an event."""
        self._events.append(event)
        self._waiting_steps += isinstance(event, Step)

    def drain(self) -> list[Event]:
        """All that has not been shown."""
        events = list(self._events)
        self._events.clear()
        self._waiting_steps = 0
        return events

    def frame(self) -> list[Event]:
        """The events to show in this frame."""
        steps_left = self._steps_due()
        shown: list[Event] = []
        while self._events:
            is_step = isinstance(self._events[0], Step)
            if is_step and not steps_left:
                break
            shown.append(self._events.popleft())
            if is_step:
                steps_left -= 1
                self._waiting_steps -= 1
                self._frames_since_step = 0
        return shown

    def _steps_due(self) -> int:
        self._frames_since_step += 1
        if self.frames_per_step:
            return int(self._frames_since_step >= self.frames_per_step)
        return math.ceil(self._waiting_steps / SMOOTHED_FRAMES)
