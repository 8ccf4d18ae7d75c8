"""A screen that was closed is gone, with all that it showed, also where it was left out of the search for garbage."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual._styles_cache import StylesCache
from textual.screen import Screen
from textual.widget import Widget

from ladechat.garbage import collect_what_is_new, free_what_was_closed
from ladechat.lessons.progress import Progress
from ladechat.protocol import Message
from ladechat.screens.chat.screen import ChatScreen
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.race import RaceScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.measuring import Measuring
from ladechat.session.race import Comparison
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Stage, recorded_turns
from tests.app.test_learn import session_of
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press, until


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return recorded_turns(tmp_path)


def replay(recording: Recording) -> Screen[Any]:
    return ReplayScreen(Recording.read(recording.path))


def race(recording: Recording) -> Screen[Any]:
    return RaceScreen(Measuring(FakeEngine(), [Message(role="user", content="Why?")]))


def side_by_side(recording: Recording) -> Screen[Any]:
    return RaceScreen(Comparison(recording, recording))


def lessons(recording: Recording) -> Screen[Any]:
    return LearnScreen(session_of(FakeEngine()), Progress())


@pytest.mark.usefixtures("garbage_as_before")
@pytest.mark.parametrize("new_screen", [replay, race, side_by_side, lessons])
async def test_what_was_opened_and_closed_is_gone(
    recording: Recording, new_screen: Callable[[Recording], Screen[Any]]
) -> None:
    async with Stage().running() as (pilot, stage):
        collect_what_is_new()
        screen = new_screen(recording)
        closed: list[weakref.ref[object]] = [weakref.ref(screen)]
        if isinstance(screen, ReplayScreen):
            closed.append(weakref.ref(screen.recording))
        drawn = weakref.WeakSet[StylesCache]()
        async with brings(lambda: len(stage.app.screen_stack) == 2, pilot):
            stage.app.push_screen(screen)
        await pilot.press("end")
        drawn.update(widget._styles_cache for widget in screen.walk_children(Widget))
        assert drawn
        gc.collect()  # all of it is left out from here on
        del screen
        await press(pilot, "q", "escape", brings=lambda: len(stage.app.screen_stack) == 1)
        await until(lambda: not any(screen() for screen in closed) and not drawn, pilot)


@pytest.mark.usefixtures("garbage_as_before")
async def test_a_screen_that_is_still_held_when_garbage_is_first_looked_for_is_gone_later(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Event()

    def look() -> None:
        free_what_was_closed()
        held.clear()
        looked.set()

    monkeypatch.setattr("ladechat.app.free_what_was_closed", look)
    async with Stage().running() as (pilot, stage):
        collect_what_is_new()
        held: list[Screen[Any]] = [side_by_side(recording)]
        closed = weakref.ref(held[0])
        async with brings(lambda: len(stage.app.screen_stack) == 2, pilot):
            stage.app.push_screen(held[0])
        await press(pilot, "escape", brings=lambda: len(stage.app.screen_stack) == 1)
        await until(looked.is_set, pilot)
        await until(lambda: closed() is None, pilot)


def a_scroll_bar(chat: Screen[Any]) -> None:
    assert chat.query_one(Prompt).horizontal_scrollbar.is_attached


def a_widget(chat: Screen[Any]) -> None:
    chat.mount(Widget())


def a_timer(chat: Screen[Any]) -> None:
    chat.set_interval(3600, chat.refresh)


def a_worker(chat: Screen[Any]) -> None:
    chat.run_worker(asyncio.Event().wait())


def another_engine(chat: Screen[Any]) -> None:
    assert isinstance(chat, ChatScreen)
    chat.action_restart_engine()


@pytest.mark.usefixtures("garbage_as_before")
@pytest.mark.parametrize("begin", [a_scroll_bar, a_widget, a_timer, a_worker, another_engine])
async def test_what_a_closed_screen_has_begun_in_the_one_below_does_not_hold_it(
    recording: Recording, begin: Callable[[Screen[Any]], None]
) -> None:
    async with Stage(FakeEngine(), FakeEngine()).running() as (pilot, stage):
        collect_what_is_new()
        screen = side_by_side(recording)
        closed, begun = weakref.ref(screen), asyncio.Event()
        async with brings(lambda: len(stage.app.screen_stack) == 2, pilot):
            stage.app.push_screen(screen)

        def handle() -> None:
            begin(stage.screen)
            begun.set()

        async with brings(begun.is_set, pilot):
            screen.call_later(handle)
        del screen, handle
        await press(pilot, "escape", brings=lambda: len(stage.app.screen_stack) == 1)
        await until(lambda: closed() is None, pilot)
