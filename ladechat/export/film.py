"""The replay of a recording, drawn off-screen by the app itself, in a time of its own: as fast as it can be drawn."""

import asyncio
import contextlib
import math
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

from textual.pilot import Pilot

from ladechat.app import LadechatApp
from ladechat.export.cells import Screen, screen_of
from ladechat.protocol import Step
from ladechat.screens.replay import ReplayScreen
from ladechat.session.replay import Recording
from ladechat.widgets.cells import printable
from ladechat.widgets.panel import Panel

FRAMES_PER_SECOND = 15
"""As often as the panels are repainted in the app."""
SETTLING = 3
"""Rounds of layout and painting until nothing changes: text arrives, its scroll view grows, and scrolls to the end."""
FONTS = re.compile(r"@font-face\s*\{[^}]*\}\s*")


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


class Interrupted(Exception):
    """Nobody wants the film any more."""


class Film:
    """The replay off-screen.

    Args:
        recording: what is replayed.
        size: of the screen.

    Attributes:
        app: the app, while `run` is at work.
        interrupted: set, it ends the work with `Interrupted`.
    """

    def __init__(self, recording: Recording, size: Size) -> None:
        self._recording = recording
        self._size = size
        self.interrupted = False
        self._now = 0.0
        self._screen = ReplayScreen(recording, lambda: self._now)
        self.app = LadechatApp(self._screen)
        self.app.animation_level = "none"

    async def run(self, work: Callable[[Pilot[object]], Awaitable[None]]) -> None:
        """Have the app run while `work` is done."""
        done = False

        async def work_then_leave(pilot: Pilot[object]) -> None:
            nonlocal done
            await self._settle(pilot)
            self.app.clear_notifications()  # they are for who exports, and go by another clock
            await self._settle(pilot)
            await work(pilot)
            done = True
            self.app.exit()

        await self.app.run_async(headless=True, size=self._size, auto_pilot=work_then_leave)
        if not done:
            raise RuntimeError("The app ended before the recording did.")

    async def frames(self, pilot: Pilot[object], progress: Progress = silent) -> AsyncIterator[Frame]:
        """Play it through. The screen is as the frame shows it until the next is asked for."""
        shown: Screen | None = None
        whole = self._recording.seconds
        for moment in moments(self._recording.times):
            progress(min(moment / whole, 1.0) if whole else 1.0)
            self._now = moment
            self._screen.show_due()
            await self._settle(pilot)
            if (screen := screen_of(self.app)) != shown:
                yield Frame(moment, screen)
                shown = screen

    async def picture(self, pilot: Pilot[object], step: int | None) -> str:
        """The screen as SVG after a step, counted from 1 through the whole recording; None: at the end."""
        self._screen.go(position_of(self._recording, step))
        await self._settle(pilot)
        svg = self.app.export_screenshot(title=title_of(self._recording))
        return FONTS.sub("", svg)  # they would be fetched from elsewhere

    async def _settle(self, pilot: Pilot[object]) -> None:
        """Until everything is painted."""
        if self.interrupted:
            raise Interrupted
        for _ in range(SETTLING):
            for panel in self.app.query(Panel):
                panel.redraw_now()
            await pilot.pause(0)


def shoot(recording: Recording, size: Size, progress: Progress = silent) -> list[Frame]:
    """All frames of a recording, at its own pace."""
    frames: list[Frame] = []

    async def work(pilot: Pilot[object]) -> None:
        frames.extend([frame async for frame in film.frames(pilot, progress)])

    with full_colour():
        film = Film(recording, size)
        _run(film, work)
    return frames


def photograph(recording: Recording, size: Size, step: int | None) -> str:
    """One screen of a recording as SVG: after a step, or the last."""
    pictures: list[str] = []

    async def work(pilot: Pilot[object]) -> None:
        pictures.append(await film.picture(pilot, step))

    with full_colour():
        film = Film(recording, size)
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


def title_of(recording: Recording) -> str:
    """The program and the model."""
    return printable(f"ladechat · {recording.header.model}")


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
