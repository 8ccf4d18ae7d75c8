"""A screen of the app, drawn off-screen by the app itself, in a time of its own: as fast as it can be drawn."""

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
from ladechat.screens.replay import ReplayScreen
from ladechat.session.replay import Recording
from ladechat.widgets.cells import printable, shorten
from ladechat.widgets.key_footer import KeyFooter
from ladechat.widgets.panel import Panel

FRAMES_PER_SECOND = 15
"""As often as the panels are repainted in the app."""
SETTLING = 3
"""Rounds of layout and painting until nothing changes: text arrives, its scroll view grows, and scrolls to the end."""
FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")
LABEL_CELLS = 80

Progress = Callable[[float], None]
"""Is told how much is done, from 0 to 1."""


def silent(_: float) -> None:
    """Progress that nobody wants to hear of."""


class Size(NamedTuple):
    """Of a screen, in cells."""

    columns: int
    rows: int


class Frame(NamedTuple):
    """What is on the screen from a moment of the session on."""

    seconds: float
    screen: Screen


class Reel(NamedTuple):
    """A film as it was drawn.

    Attributes:
        frames: in order; at least one.
        size: of the screen.
        title: of the film.
        markers: what is noteworthy, and when.
    """

    frames: list[Frame]
    size: Size
    title: str
    markers: list[tuple[float, str]]


class Interrupted(Exception):
    """Nobody wants the film any more."""


class Film(ABC):
    """A screen that changes with time.

    Args:
        screen: goes by the clock of the film, which is `self.now`.
        size: of the screen.

    Attributes:
        app: the app, while `run` is at work.
        now: seconds since the beginning.
        title: of the film.
        interrupted: set, it ends the work with `Interrupted`.
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
        """When a frame is drawn."""

    @abstractmethod
    async def show(self) -> None:
        """Show what is to be seen now."""

    @abstractmethod
    def done(self) -> float:
        """How much has been shown, from 0 to 1."""

    async def run(self, work: Callable[[Pilot[object]], Awaitable[None]]) -> None:
        """Have the app run while `work` is done."""
        done = False

        async def work_then_leave(pilot: Pilot[object]) -> None:
            nonlocal done
            self.app.screen.query_one(KeyFooter).display = False  # nobody can press its keys
            await self._settle(pilot)
            self.app.clear_notifications()  # they are for who exports, and go by another clock
            await self._settle(pilot)
            await work(pilot)
            done = True
            self.app.exit()

        await self.app.run_async(headless=True, size=self._size, auto_pilot=work_then_leave)
        if not done:
            raise RuntimeError("The app ended before the film did.")

    async def frames(self, pilot: Pilot[object], progress: Progress = silent) -> AsyncIterator[Frame]:
        """Play it through. The screen is as the frame shows it until the next is asked for."""
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
        """The screen as it is, as SVG."""
        await self._settle(pilot)
        return FONTS.sub("", self.app.export_screenshot(title=self.title))  # they would be fetched from elsewhere

    async def _settle(self, pilot: Pilot[object]) -> None:
        """Until everything is painted."""
        if self.interrupted:
            raise Interrupted
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
    """A recording as a film; its questions, and what was wrong with the file, are markers."""
    notices = [(0.0, notice) for notice in recording.notices]
    questions = [(recording.times[turn.position], turn.question) for turn in recording.turns]
    markers = [(seconds, shorten(" ".join(text.split()), LABEL_CELLS)) for seconds, text in notices + questions]
    return drawn(lambda: ReplayFilm(recording, size), size, markers, progress)


def photograph(recording: Recording, size: Size, step: int | None) -> str:
    """One screen of a recording as SVG: after a step, counted from 1 through all of it, or the last."""

    async def go_there(film: ReplayFilm) -> None:
        film.screen.go(position_of(recording, step))

    return pictured(lambda: ReplayFilm(recording, size), go_there)


def drawn(new_film: Callable[[], Film], size: Size, markers: list[tuple[float, str]], progress: Progress) -> Reel:
    """All frames of a film, which is made where colours are full."""
    frames: list[Frame] = []

    async def work(pilot: Pilot[object]) -> None:
        frames.extend([frame async for frame in film.frames(pilot, progress)])

    with full_colour():
        film = new_film()
        _run(film, work)
    return Reel(frames, size, film.title, markers)


def pictured(new_film: Callable[[], AnyFilm], go_there: Callable[[AnyFilm], Awaitable[None]]) -> str:
    """One screen of a film as SVG, where `go_there` leads."""
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

    asyncio's own way with Ctrl+C would cancel the app, which ends only when our work does, which waits for the app.
    """

    def interrupt(*_: object) -> None:
        film.interrupted = True

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        asyncio.run(film.run(work))
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def full_colour() -> Iterator[None]:
    """Draw in full colour, whatever this terminal can show and NO_COLOR says: the file is for other screens."""
    before = dict(os.environ)
    os.environ.pop("NO_COLOR", None)
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def moments(times: list[float]) -> Iterator[float]:
    """When a frame is drawn: at the first moment of the film at or after each event, and behind the last."""
    before = -1
    for seconds in times:
        moment = math.ceil(seconds * FRAMES_PER_SECOND)
        if moment > before:
            yield moment / FRAMES_PER_SECOND
            before = moment
    yield (before + 1) / FRAMES_PER_SECOND


def steps_in(recording: Recording) -> int:
    """How many steps a recording has."""
    return sum(isinstance(event, Step) for event in recording.events)


def position_of(recording: Recording, step: int | None) -> int:
    """How many events have been shown after a step, counted from 1; None, or more than there are: all."""
    if step is not None:
        for position, event in enumerate(recording.events, start=1):
            step -= isinstance(event, Step)
            if step == 0:
                return position
    return len(recording.events)
