"""Draws a screen of the app off-screen, in the app itself, on a simulated clock: a replay or a race."""

import asyncio
import contextlib
import math
import os
import re
import signal
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import count
from typing import NamedTuple, TypeVar

from textual.pilot import Pilot

from ladechat.app import LadechatApp, Opening
from ladechat.export.cells import Screen, screen_of
from ladechat.screens.race import RaceScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.measuring import Measuring
from ladechat.session.recordings.recording import Recording
from ladechat.session.session import Session
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.cells import printable, shorten
from ladechat.widgets.panels.panel import Panel

FRAMES_PER_SECOND = 15
"""The repaint rate of the app's panels."""
SETTLING = 3
"""Rounds of layout and painting until nothing changes: text arrives, its view grows, and scrolls to the end."""
FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")
LABEL_CELLS = 80

Progress = Callable[[float], None]
"""Called with the fraction that is done, from 0 to 1."""


def silent(_: float) -> None:
    """Ignore progress."""


Size = tuple[int, int]
"""Columns and rows of a screen."""


class Frame(NamedTuple):
    """A screen, and the second of the session from which on it is shown."""

    seconds: float
    screen: Screen


class Reel(NamedTuple):
    """A drawn film.

    Attributes:
        frames: in order, at least one.
        markers: seconds and texts of noteworthy moments.
    """

    frames: list[Frame]
    size: Size
    title: str
    markers: list[tuple[float, str]]


class FilmInterrupted(Exception):
    """The film is no longer wanted: Ctrl+C was pressed."""


Made = TypeVar("Made")


class OffScreen:
    """The app on a screen that nobody sees. `session` is that of its engine, if it has one.

    Attributes:
        app: the app, which runs during `run`.
        interrupted: if set, the work ends with `FilmInterrupted`.
    """

    def __init__(self, screen: Opening, size: Size, session: Session | None = None) -> None:
        self.size = size
        self.interrupted = False
        self.app = LadechatApp(screen, session)
        self.app.animation_level = "none"

    async def run(self, work: Callable[[Pilot[object]], Awaitable[Made]]) -> Made:
        """Run the app during `work`, and return what that returns."""
        made: list[Made] = []

        async def work_then_leave(pilot: Pilot[object]) -> None:
            self.app.screen.query_one(KeyFooter).display = False  # nobody can press its keys
            await self.settle(pilot)
            self.app.clear_notifications()  # they are for the user who exports, and use another clock
            await self.settle(pilot)
            made.append(await work(pilot))
            self.app.exit()

        await self.app.run_async(headless=True, size=self.size, auto_pilot=work_then_leave)
        if not made:
            raise RuntimeError("The app ended before the film did.")
        return made[0]

    async def settle(self, pilot: Pilot[object]) -> None:
        """Wait until everything is painted."""
        if self.interrupted:
            raise FilmInterrupted
        for _ in range(SETTLING):
            for panel in self.app.query(Panel):
                panel.drawing.at_once_if_waiting()
            await pilot.pause(0)


class Film(OffScreen, ABC):
    """A screen of the app that changes with time, by the film's clock: `now`, in seconds since the start."""

    def __init__(self, screen: ReplayScreen | RaceScreen, size: Size, title: str) -> None:
        super().__init__(screen, size)
        self.now = 0.0
        self.title = printable(title)

    @abstractmethod
    def moments(self) -> Iterator[float]:
        """Yield the seconds at which frames are drawn."""

    @abstractmethod
    async def show(self) -> None:
        """Update the screen to the present moment."""

    @abstractmethod
    def done(self) -> float:
        """Return the fraction that has been shown, from 0 to 1."""

    async def frames(self, pilot: Pilot[object], progress: Progress = silent) -> AsyncIterator[Frame]:
        """Play the film, and yield its frames. The screen stays that of a frame until the next one is requested."""
        shown: Screen | None = None
        for moment in self.moments():
            self.now = moment
            await self.show()
            await self.settle(pilot)
            progress(self.done())
            if (screen := screen_of(self.app)) != shown:
                yield Frame(moment, screen)
                shown = screen

    async def picture(self, pilot: Pilot[object]) -> str:
        """Return the present screen as SVG."""
        await self.settle(pilot)
        return FONTS.sub("", self.app.export_screenshot(title=self.title))  # fonts would be loaded from the network


class ReplayFilm(Film):
    """The replay of a recording, at the pace of its session."""

    def __init__(self, recording: Recording, size: Size) -> None:
        self._recording = recording
        self.screen = ReplayScreen(recording, lambda: self.now)
        super().__init__(self.screen, size, f"ladechat · {recording.header.model}")

    def moments(self) -> Iterator[float]:
        return moments(self._recording.times)

    async def show(self) -> None:
        self.screen.show_due()

    def done(self) -> float:
        return self.screen.player.position / len(self._recording.events)


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


AnyFilm = TypeVar("AnyFilm", bound=OffScreen)
AnyReel = TypeVar("AnyReel", bound=Film)


def shoot(recording: Recording, size: Size, progress: Progress = silent) -> Reel:
    """Return a recording as a film, with its questions and the problems of the file as markers."""
    notices = [(0.0, notice) for notice in recording.notices]
    questions = [(recording.times[turn.position], turn.question) for turn in recording.turns]
    markers = [(seconds, shorten(" ".join(text.split()), LABEL_CELLS)) for seconds, text in notices + questions]
    return _drawn(lambda: ReplayFilm(recording, size), markers, progress)


def shoot_race(measuring: Measuring, size: Size, progress: Progress = silent) -> Reel:
    """Return a race as a film."""
    return _drawn(lambda: RaceFilm(measuring, size), [], progress)


def photograph(recording: Recording, size: Size, step: int | None) -> str:
    """Return one screen of a recording as SVG: after a step, counted from 1 through all of it, or the last."""

    async def go_there(film: ReplayFilm) -> None:
        film.screen.go(len(recording.events) if step is None else bisect_left(recording.steps_before, step))

    return _pictured(lambda: ReplayFilm(recording, size), go_there)


def photograph_race(measuring: Measuring, size: Size) -> str:
    """Return the end of a race as SVG, with the exactness check."""

    async def go_there(film: RaceFilm) -> None:
        while film.screen.track is None:
            await film.show()
        film.screen.action_to_end()

    return _pictured(lambda: RaceFilm(measuring, size), go_there)


def _drawn(new_film: Callable[[], Film], markers: list[tuple[float, str]], progress: Progress) -> Reel:
    """Return all frames of a film."""

    async def work(film: Film, pilot: Pilot[object]) -> Reel:
        return Reel([frame async for frame in film.frames(pilot, progress)], film.size, film.title, markers)

    return played(new_film, work)


def _pictured(new_film: Callable[[], AnyReel], go_there: Callable[[AnyReel], Awaitable[None]]) -> str:
    """Return one screen of a film as SVG: the one that `go_there` goes to."""

    async def work(film: AnyReel, pilot: Pilot[object]) -> str:
        await go_there(film)
        return await film.picture(pilot)

    return played(new_film, work)


def played(new_film: Callable[[], AnyFilm], work: Callable[[AnyFilm, Pilot[object]], Awaitable[Made]]) -> Made:
    """Create a film with full colour available, and run it in the main thread, until its end or Ctrl+C.

    asyncio's handling of Ctrl+C would cancel the app, which ends only when our work does, which waits for the app.
    """

    def interrupt(*_: object) -> None:
        film.interrupted = True

    with full_colour():
        film = new_film()
        before = signal.signal(signal.SIGINT, interrupt)
        try:
            return asyncio.run(film.run(lambda pilot: work(film, pilot)))
        except FilmInterrupted:
            raise KeyboardInterrupt from None
        finally:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def full_colour() -> Iterator[None]:
    """Draw in full colour, whatever this terminal supports and NO_COLOR says: the file is for other screens."""
    before = dict(os.environ)
    os.environ.pop("NO_COLOR", None)
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def moments(times: list[float]) -> Iterator[float]:
    """Yield the seconds at which frames are drawn: the first frame at or after each event, and one after the last."""
    before = -1
    for seconds in times:
        moment = math.ceil(seconds * FRAMES_PER_SECOND)
        if moment > before:
            yield moment / FRAMES_PER_SECOND
            before = moment
    yield (before + 1) / FRAMES_PER_SECOND
