"""The pace that the viewer wants. It is the engine that keeps it, so what is seen is what is happening."""

from dataclasses import dataclass, replace

from ladechat.protocol import Pace

RATES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, None)
"""Steps a second, from slow to fast; None is as many as the engine can."""
SLOW_MOTION = 4.0


@dataclass(frozen=True)
class ViewerPace:
    """How many steps a second are wanted, and whether they are held up; the rate is kept over a pause."""

    rate: float | None = None
    paused: bool = False

    def faster(self, places: int) -> "ViewerPace":
        """So many places on in the table of rates; slower if they are negative."""
        place = min(max(RATES.index(self.rate) + places, 0), len(RATES) - 1)
        return replace(self, rate=RATES[place])

    def slow_motion(self) -> "ViewerPace":
        """Four steps a second; at that rate already, as many as the engine can."""
        return replace(self, rate=None if self.in_slow_motion else SLOW_MOTION)

    @property
    def in_slow_motion(self) -> bool:
        """Is it the rate that slow motion has?"""
        return self.rate == SLOW_MOTION

    def pause(self, on: bool) -> "ViewerPace":
        """With a pause, or without."""
        return replace(self, paused=on)

    def command(self) -> Pace:
        """What the engine is told."""
        return Pace(steps_per_second=0.0 if self.paused else self.rate)
