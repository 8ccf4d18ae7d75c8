"""Draws a measured race as a film or a picture, pass by pass."""

from collections.abc import Iterator
from itertools import count

from ladechat.export.film import FRAMES_PER_SECOND, Film, Progress, Reel, Size, drawn, pictured, silent
from ladechat.screens.race import RaceScreen
from ladechat.session.measuring import Measuring


class RaceFilm(Film):
    """A race from its start to its exactness check."""

    def __init__(self, measuring: Measuring, size: Size) -> None:
        self.screen = RaceScreen(measuring, lambda: self.now)
        super().__init__(self.screen, size, f"ladechat · {measuring.question}")

    def moments(self) -> Iterator[float]:
        for frame in count():
            yield frame / FRAMES_PER_SECOND
            if self.screen.track is not None and self.screen.track.at_end:
                return

    async def show(self) -> None:
        await self.screen.frame()

    def done(self) -> float:
        track = self.screen.track
        return track.at / track.end if track is not None and track.end else 1.0


def shoot_race(measuring: Measuring, size: Size, progress: Progress = silent) -> Reel:
    """Return a race as a film."""
    return drawn(lambda: RaceFilm(measuring, size), size, [], progress)


def photograph_race(measuring: Measuring, size: Size) -> str:
    """Return the end of a race as SVG, with the exactness check."""

    async def go_there(film: RaceFilm) -> None:
        while film.screen.track is None:
            await film.show()
        film.screen.action_to_end()

    return pictured(lambda: RaceFilm(measuring, size), go_there)
