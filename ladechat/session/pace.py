"""The requested pace. The engine itself follows it, so that what is seen is what is happening."""

from dataclasses import dataclass, replace

from ladechat.protocol import Pace

RATES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, None)
"""Steps per second, from slow to fast; None: as fast as possible."""
SLOW_MOTION = 4.0


@dataclass(frozen=True)
class ViewerPace:
    """The requested steps per second, and whether they are paused; the rate outlasts a pause."""

    rate: float | None = None
    paused: bool = False

    def faster(self, places: int) -> "ViewerPace":
        """Return the pace that is `places` further in the table of rates; slower if negative."""
        place = min(max(RATES.index(self.rate) + places, 0), len(RATES) - 1)
        return replace(self, rate=RATES[place])

    def slow_motion(self) -> "ViewerPace":
        """Return the pace of slow motion, four steps per second; in slow motion, the pace as fast as possible."""
        return replace(self, rate=None if self.in_slow_motion else SLOW_MOTION)

    @property
    def in_slow_motion(self) -> bool:
        """Whether the rate is that of slow motion."""
        return self.rate == SLOW_MOTION

    def pause(self, on: bool) -> "ViewerPace":
        """Return the same pace, paused or not."""
        return replace(self, paused=on)

    def command(self) -> Pace:
        """Return the command that sets this pace."""
        return Pace(steps_per_second=0.0 if self.paused else self.rate)
