"""While nothing happens nothing runs: on no screen a timer waits, of ours or of Textual's, so nothing can be drawn."""

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ladechat.app import LadechatApp
from ladechat.screens.race import RaceScreen
from ladechat.screens.replay.screen import ReplayScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.session.race import Comparison
from ladechat.session.recordings.recording import Recording
from tests.app.stage import Stage, answered, ask, recorded_turns, replaying
from tests.app.test_learn import Room as Lessons
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press, until

AN_HOUR = 3600.0


def timers() -> list[asyncio.TimerHandle]:
    """What this process would do later, though nothing happens until then."""
    waiting: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return [timer for timer in waiting if not timer.cancelled()]


async def rests(pilot: Pilot[int]) -> None:
    """Wait until no timer waits, at some looks in a row: one that sets itself again is not there while it does."""
    looks = 0

    def still() -> bool:
        nonlocal looks
        looks = 0 if timers() else looks + 1
        return looks == 6

    await until(still, pilot)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """Two answers, and an hour between any two events."""
    return recorded_turns(tmp_path, pace=AN_HOUR)


async def test_a_chat_rests_before_and_after_an_answer_and_while_a_question_is_typed() -> None:
    async with Stage().running() as (pilot, stage):
        await rests(pilot)
        await answered(pilot, stage, "Why?")
        await rests(pilot)
        await pilot.press("a", "b")
        await rests(pilot)
        assert stage.prompt == "ab"


async def test_a_chat_rests_in_a_pause_and_goes_on() -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await ask(pilot, "Why?")
        await press(pilot, "space", brings=lambda: stage.session.pace.paused)
        await rests(pilot)
        async with brings(lambda: " tokens a pass" in stage.text, pilot):
            await pilot.press("space")
            stage.engine.release()


async def test_lists_and_fields_over_a_chat_rest(tmp_path: Path) -> None:
    async with Stage(store=ConversationStore(tmp_path)).running() as (pilot, stage):
        for key in ("f1", "ctrl+o", "ctrl+p"):
            await press(pilot, key, brings=lambda: len(stage.app.screen_stack) == 2)
            await rests(pilot)
            await press(pilot, "escape", brings=lambda: len(stage.app.screen_stack) == 1)


async def test_a_replay_rests_paused_and_finished_and_while_a_text_is_searched_for(recording: Recording) -> None:
    async with replaying(recording, playing=True) as (pilot, app, screen):
        await until(lambda: screen.player.position > 0, pilot)
        assert timers(), "it plays"
        app.clear_notifications()  # that the recording was not closed is said for ten seconds
        for key in ("space", "right", "end", "home", "slash"):
            await pilot.press(key)
            await rests(pilot)


async def test_a_replay_goes_on_from_where_it_was_paused(recording: Recording) -> None:
    seconds = 0.0
    screen = ReplayScreen(recording, lambda: seconds)
    async with LadechatApp(screen).run_test() as pilot:
        await pilot.press("space", "right", "space", "space")
        at = screen.player.seconds
        seconds += AN_HOUR / 2
        await press(pilot, "space", brings=lambda: screen.player.playing)
        assert screen.player.seconds == at
        seconds += AN_HOUR / 2
        await until(lambda: screen.player.seconds == at + AN_HOUR / 2, pilot)


async def test_a_race_rests_paused_and_finished(recording: Recording) -> None:
    screen = RaceScreen(Comparison(recording, recording))
    async with LadechatApp(screen).run_test() as pilot:
        await until(lambda: screen.track is not None, pilot)
        for key in ("space", "right", "home", "end"):
            await pilot.press(key)
            await rests(pilot)


async def test_a_race_goes_on_from_where_it_was_paused(recording: Recording) -> None:
    seconds = 0.0
    screen = RaceScreen(Comparison(recording, recording), lambda: seconds)
    async with LadechatApp(screen).run_test() as pilot:
        await until(lambda: screen.track is not None, pilot)
        await pilot.press("right")
        assert screen.track is not None and screen.track.at == 1
        seconds += AN_HOUR
        await pilot.press("space")
        assert screen.track.playing and screen.track.at == 1


async def test_lessons_rest_while_the_reader_reads() -> None:
    room = Lessons(FakeEngine())
    async with room.app.run_test() as pilot:
        await rests(pilot)
        await press(pilot, "enter", brings=lambda: room.at("one_token", 1))
        await rests(pilot)
