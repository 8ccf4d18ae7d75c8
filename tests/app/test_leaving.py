"""Stopping an answer, and leaving the app."""

import pytest
from textual.selection import Selection

from ladechat.protocol import Stop
from ladechat.widgets.transcript import Transcript
from tests.app.stage import Stage, ask, wait_until
from tests.fake_engine import ANSWER, FakeEngine


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_key_stops_the_answer_and_what_there_is_of_it_is_kept(key: str) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.asking)
        stage.engine.release(4)
        await wait_until(pilot, lambda: "The n-gram" in stage.text)
        await pilot.press(key)
        await wait_until(pilot, lambda: not stage.asking)
        assert stage.engine.commands.count(Stop()) == 1
        assert "stopped" in stage.text
        stage.engine.release()
        await ask(pilot, "Two?")
        await wait_until(pilot, lambda: len(stage.engine.questions) == 2 and not stage.asking)
        kept = stage.engine.questions[1].messages[1].content
        assert kept and ANSWER.startswith(kept) and kept != ANSWER


async def test_without_an_answer_escape_sends_nothing() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("escape")
        assert stage.engine.commands == []


async def test_ctrl_c_copies_the_selection_and_neither_stops_nor_quits() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "What is copied?")
        await wait_until(pilot, lambda: "What is copied?" in stage.text)
        transcript = stage.app.query_one(Transcript)
        stage.app.screen.selections = {transcript: Selection(None, None)}
        await pilot.press("ctrl+c")
        assert "What is copied?" in stage.app.clipboard
        assert stage.asking
        assert Stop() not in stage.engine.commands
        assert stage.app.screen.get_selected_text() is None


async def test_ctrl_c_quits_only_at_the_second_time() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press("ctrl+c")
        assert stage.app.return_value is None
        assert stage.notices == ["Ctrl+C again quits."]
        await pilot.press("ctrl+c")
        assert stage.app.return_value == 0


@pytest.mark.parametrize("paused", [False, True])
async def test_leaving_closes_the_engine_also_in_the_middle_of_an_answer(paused: bool) -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        stage.engine.release(3)
        await wait_until(pilot, lambda: "The" in stage.text)
        if paused:
            await wait_until(pilot, lambda: stage.pace_has_keys)
            await pilot.press("space")
            await wait_until(pilot, lambda: stage.engine.pace == 0)
        await pilot.press("ctrl+q")
    assert stage.app.return_code == 0
    assert stage.engine.closed
