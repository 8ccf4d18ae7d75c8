"""Draws a screen of the app off-screen, in the app itself, on a simulated clock: as fast as possible."""

import asyncio
import contextlib
import math
import os
import re
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple, TypeVar

from textual.pilot import Pilot

from ladechat.app import LadechatApp
from ladechat.export.cells import Screen, screen_of
from ladechat.protocol import Step
from ladechat.screens.race import RaceScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.recordings.replay import Recording
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


class Size(NamedTuple):
    """The size of a screen, in cells."""

    columns: int
    rows: int


class Frame(NamedTuple):
    """A screen, and the second of the session from which on it is shown."""

    seconds: float
    screen: Screen


class Reel(NamedTuple):
    """A drawn film.

    Attributes:
        frames: the frames, in order; at least one.
        size: the size of the screen.
        title: the title of the film.
        markers: seconds and texts of noteworthy moments.
    """

    frames: list[Frame]
    size: Size
    title: str
    markers: list[tuple[float, str]]


class FilmInterrupted(Exception):
    """The film is no longer wanted: Ctrl+C was pressed."""


class Film(ABC):
    """A screen of the app that changes with time.

    Args:
        screen: a screen that uses the film's clock, `self.now`.
        size: the size of the screen.

    Attributes:
        app: the app, which runs during `run`.
        now: seconds since the start.
        title: the title of the film.
        interrupted: if set, the work ends with `FilmInterrupted`.
    """

    def __init__(self, screen: ReplayScreen | RaceScreen, size: Size, title: str) -> None:
        self._size = size
        self.now = 0.0
        self.title = printable(title)
        self.interrupted = False
        self.app = LadechatApp(screen)
        self.app.animation_level = "none"

    @abstractmethod
    def moments(self) -> Iterator[float]:
        """Yield the seconds at which frames are drawn."""

    @abstractmethod
    async def show(self) -> None:
        """Update the screen to the present moment."""

    @abstractmethod
    def done(self) -> float:
        """Return the fraction that has been shown, from 0 to 1."""

    async def run(self, work: Callable[[Pilot[object]], Awaitable[None]]) -> None:
        """Run the app during `work`."""
        done = False

        async def work_then_leave(pilot: Pilot[object]) -> None:
            nonlocal done
            self.app.screen.query_one(KeyFooter).display = False  # nobody can press its keys
            await self._settle(pilot)
            self.app.clear_notifications()  # they are for the user who exports, and use another clock
            await self._settle(pilot)
            await work(pilot)
            done = True
            self.app.exit()

        await self.app.run_async(headless=True, size=self._size, auto_pilot=work_then_leave)
        if not done:
            raise RuntimeError("The app ended before the film did.")

    async def frames(self, pilot: Pilot[object], progress: Progress = silent) -> AsyncIterator[Frame]:
        """Play the film, and yield its frames. The screen stays that of a frame until the next one is requested."""
        shown: Screen | None = None
        for moment in self.moments():
            self.now = moment
            await self.show()
            await self._settle(pilot)
            progress(self.done())
            if (screen := screen_of(self.app)) != shown:
                yield Frame(moment, screen)
                shown = screen

    async def picture(self, pilot: Pilot[object]) -> str:
        """Return the present screen as SVG."""
        await self._settle(pilot)
        return FONTS.sub("", self.app.export_screenshot(title=self.title))  # fonts would be loaded from the network

    async def _settle(self, pilot: Pilot[object]) -> None:
        """Wait until everything is painted."""
        if self.interrupted:
            raise FilmInterrupted
        for _ in range(SETTLING):
            for panel in self.app.query(Panel):
                panel.redraw_now()
            await pilot.pause(0)


AnyFilm = TypeVar("AnyFilm", bound=Film)


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


def shoot(recording: Recording, size: Size, progress: Progress = silent) -> Reel:
    """Return a recording as a film, with its questions and the problems of the file as markers."""
    notices = [(0.0, notice) for notice in recording.notices]
    questions = [(recording.times[turn.position], turn.question) for turn in recording.turns]
    markers = [(seconds, shorten(" ".join(text.split()), LABEL_CELLS)) for seconds, text in notices + questions]
    return drawn(lambda: ReplayFilm(recording, size), size, markers, progress)


def photograph(recording: Recording, size: Size, step: int | None) -> str:
    """Return one screen of a recording as SVG: after a step, counted from 1 through all of it, or the last."""

    async def go_there(film: ReplayFilm) -> None:
        film.screen.go(position_of(recording, step))

    return pictured(lambda: ReplayFilm(recording, size), go_there)


def drawn(new_film: Callable[[], Film], size: Size, markers: list[tuple[float, str]], progress: Progress) -> Reel:
    """Return all frames of a film, which is created with full colour available."""
    frames: list[Frame] = []

    async def work(pilot: Pilot[object]) -> None:
        frames.extend([frame async for frame in film.frames(pilot, progress)])

    with full_colour():
        film = new_film()
        _run(film, work)
    return Reel(frames, size, film.title, markers)


def pictured(new_film: Callable[[], AnyFilm], go_there: Callable[[AnyFilm], Awaitable[None]]) -> str:
    """Return one screen of a film as SVG: the one that `go_there` goes to."""
    pictures: list[str] = []

    async def work(pilot: Pilot[object]) -> None:
        await go_there(film)
        pictures.append(await film.picture(pilot))

    with full_colour():
        film = new_film()
        _run(film, work)
    return pictures[0]


def _run(film: Film, work: Callable[[Pilot[object]], Awaitable[None]]) -> None:
    """Run a film in the main thread, until its end or Ctrl+C.

    asyncio's handling of Ctrl+C would cancel the app, which ends only when our work does, which waits for the app.
    """

    def interrupt(*_: object) -> None:
        film.interrupted = True

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        asyncio.run(film.run(work))
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


def steps_in(recording: Recording) -> int:
    """Return the number of steps in a recording."""
    return sum(isinstance(event, Step) for event in recording.events)


def position_of(recording: Recording, step: int | None) -> int:
    """Return the number of events shown after a step, counted from 1; None, or more than there are: all."""
    if step is not None:
        for position, event in enumerate(recording.events, start=1):
            step -= isinstance(event, Step)
            if step == 0:
                return position
    return len(recording.events)
