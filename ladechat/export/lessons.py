"""Plays the lessons on a screen that nobody sees: cards, answers, and what the panels show after each pass.

The engine is a real one, and takes a step whenever the last one has been drawn.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from textual.pilot import Pilot

from ladechat.export.cells import Screen, screen_of
from ladechat.export.film import OffScreen, Progress, played, silent
from ladechat.export.pictures import Looks, Picture, part_of
from ladechat.lessons.lesson import Lesson, Page, Phase
from ladechat.lessons.progress import Progress as Place
from ladechat.lessons.scene import Predict, Run, Scene, Task
from ladechat.lessons.scenes import CHAPTERS
from ladechat.protocol import DecoderInfo, Event, Failed, Header, SettingsApplied
from ladechat.screens.learn.screen import LearnScreen
from ladechat.session.engine import State
from ladechat.session.session import Session
from ladechat.widgets.sliders.slider import Slider

SIZE = (120, 40)
"""The size of the screen whose panels are shown: all of them have room, and they fit beside an answer on a page."""
DARK, LIGHT = "textual-dark", "textual-light"
SECONDS_TO_LOOK = 0.5
"""How often a wait for the engine looks whether Ctrl+C was pressed."""


class EngineEnded(Exception):
    """The engine has ended before the lessons did."""


class Moment(NamedTuple):
    """A state of a scene: the index of its card, the number of answers that have begun, and of steps of the last of
    them, and what the panels show.
    """

    card: int
    phase: Phase
    runs: int
    steps: int
    picture: Picture


@dataclass
class ShownCard:
    """A card as it was shown.

    Attributes:
        question: what it asked for before it explained anything: a prediction, or a slider; "" if nothing.
        hides: whether its explanation, the text, stays hidden until the reader asks for it.
        outcome: the index of the choice that came true.
    """

    question: str = ""
    hides: bool = False
    choices: tuple[str, ...] = ()
    outcome: int | None = None
    text: str = ""

    def note(self, page: Page) -> None:
        """Note what the card shows now."""
        if page.phase is Phase.WAITING:
            self.question, self.hides = page.text, not isinstance(page.card, Task)
            self.choices = page.card.choices if isinstance(page.card, Predict) else ()
        elif page.phase is Phase.EXPLAINED:
            self.text, self.outcome = page.text.removeprefix(self.question).lstrip(), page.outcome


@dataclass
class ShownScene:
    """A scene as it was shown, from its first card to its last."""

    scene: Scene
    runs: Sequence[Run]
    decoders: Mapping[str, DecoderInfo]
    cards: list[ShownCard] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)


class ShownLessons(NamedTuple):
    """The scenes, the looks of their pictures, and what the engine has said of itself."""

    scenes: list[ShownScene]
    looks: Looks
    header: Header


class _SteppedLessons(LearnScreen):
    """The lessons, which show an event, and ask the engine for the next one, only when `go_on` is called."""

    def __init__(self, session: Session, place: Place) -> None:
        super().__init__(session, place)
        self._changed = asyncio.Event()
        self._unshown: deque[Event] = deque()
        self._failed: Failed | None = None
        self.header: Header | None = None

    def _frame(self) -> None:
        self._changed.set()

    def show(self, events: Sequence[Event]) -> None:
        """Take in what has come, without showing it."""
        self._unshown += events
        self.header = next((event for event in events if isinstance(event, Header)), self.header)
        self._failed = next((event for event in reversed(events) if isinstance(event, Failed)), self._failed)

    @property
    def busy(self) -> bool:
        """Whether there is more to show or to ask for, whatever the reader does."""
        return bool(self._unshown) or self._hurries or self._changed.is_set()

    @property
    def _hurries(self) -> bool:
        return self._session.asking and not self._session.pace.paused

    async def go_on(self) -> None:
        """Show the next event. If there is none, ask the engine for it, and wait a moment.

        An answer at full speed comes whole before its first step is shown: drawing would slow the engine down.

        Raises:
            EngineEnded: no event will come.
        """
        hurries = self._hurries
        if self._unshown and not hurries:
            super().show([self._unshown.popleft()])
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), SECONDS_TO_LOOK)
        self._changed.clear()
        self.lesson.hurried = True
        if hurries:
            self._session.frame()
        else:
            super()._frame()
        if self._session.state is State.ENDED and not self._unshown:
            raise EngineEnded("it broke off." if self._failed is None else self._failed.message)


class _LessonFilm(OffScreen):
    """The lessons from the scene with the index `first` on, in a session that was not started yet."""

    def __init__(self, session: Session, first: int) -> None:
        self.screen = _SteppedLessons(session, Place().at_scene(first))
        super().__init__(self.screen, SIZE, session)
        self.looks = Looks()

    async def scene(self, pilot: Pilot[object]) -> ShownScene:
        """Go through the present scene as a reader would, to its end."""
        screen, lesson = self.screen, self.screen.lesson
        while not any(isinstance(event, SettingsApplied) for event in lesson.events):
            await self._more(pilot)
        shown = ShownScene(lesson.scene, lesson.runs, {info.name: info for info in screen.decoders})
        while True:
            await self._note(pilot, shown, lesson)
            page = lesson.page
            if page.phase is Phase.RUNNING or screen.busy:
                await self._more(pilot)
            elif lesson.at_last_card:
                return shown
            elif isinstance(page.card, Predict) and page.phase is Phase.WAITING:
                screen.action_answer(0)  # whatever: the page asks its own reader
                await self.settle(pilot)
            else:
                await self._move_slider(pilot, lesson)
                screen.action_go_on()
                await self.settle(pilot)

    async def _more(self, pilot: Pilot[object]) -> None:
        await self.screen.go_on()
        await self.settle(pilot)

    async def _move_slider(self, pilot: Pilot[object], lesson: Lesson) -> None:
        """Do what a task asks for: leap once, to the lowest value, or on and on, until it is done."""
        for tries in count():
            slider = self.app.focused
            if not lesson.missing or not isinstance(slider, Slider):
                return
            before = slider.value
            if tries == 1:
                slider.action_move_to_end(-1)
            else:
                slider.action_leap(1)
            if slider.value != before:
                settings = lesson.settings
                while lesson.settings == settings:
                    await self._more(pilot)

    async def _note(self, pilot: Pilot[object], shown: ShownScene, lesson: Lesson) -> None:
        """Note what is shown now."""
        if lesson.reached == len(shown.cards):
            shown.cards.append(ShownCard())
        shown.cards[lesson.place].note(lesson.page)
        steps = lesson.runs[-1].passes if lesson.runs else 0
        moment = Moment(lesson.place, lesson.page.phase, len(lesson.runs), steps, await self._picture(pilot))
        if shown.moments and shown.moments[-1][:-1] == moment[:-1]:
            shown.moments.pop()
        shown.moments.append(moment)

    async def _picture(self, pilot: Pilot[object]) -> Picture:
        dark = self._panels()
        if self.looks.unknown(dark):
            self.app.theme = LIGHT
            await self.settle(pilot)
            self.looks.learn(dark, self._panels())
            self.app.theme = DARK
            await self.settle(pilot)
        return self.looks.picture(dark)

    def _panels(self) -> Screen:
        return part_of(screen_of(self.app), self.screen.query_one("#side").content_region)


def shoot_lessons(session: Session, first: int = 0, progress: Progress = silent) -> ShownLessons:
    """Return the lessons from a scene on, as a real engine plays them.

    Raises:
        EngineEnded: it does not play them to their end.
    """

    async def work(film: _LessonFilm, pilot: Pilot[object]) -> ShownLessons:
        film.app.theme = DARK
        scenes: list[ShownScene] = []
        for number in range(first, len(CHAPTERS)):
            scenes.append(await film.scene(pilot))
            progress((number + 1 - first) / (len(CHAPTERS) - first))
            if number + 1 < len(CHAPTERS):
                film.screen.action_next_scene()
        assert film.screen.header is not None, "which comes before all that it has played"
        return ShownLessons(scenes, film.looks, film.screen.header)

    return played(lambda: _LessonFilm(session, first), work)
