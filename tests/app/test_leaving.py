"""Stopping an answer, and leaving the app."""

from pathlib import Path

import pytest
from textual.selection import Selection

from ladechat.protocol import Stop
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Stage, answered, ask, begun
from tests.fake_engine import ANSWER, FakeEngine
from tests.waiting import act, brings, patience, press, until


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_key_stops_the_answer_and_what_there_is_of_it_is_kept(key: str) -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.asking)
        await act(pilot, lambda: stage.engine.release(4), brings=lambda: "The n-gram" in stage.text)
        await press(pilot, key, brings=lambda: not stage.asking)
        assert stage.engine.commands.count(Stop()) == 1
        assert "stopped" in stage.text
        async with brings(lambda: len(stage.engine.questions) == 2 and not stage.asking, pilot):
            stage.engine.release()
            await ask(pilot, "Two?")
        kept = stage.engine.questions[1].messages[1].content
        assert kept and ANSWER.startswith(kept) and kept != ANSWER


async def test_without_an_answer_escape_sends_nothing() -> None:
    async with Stage().ready() as (pilot, stage):
        await pilot.press("escape")
        await answered(pilot, stage, "One?")
        assert stage.engine.commands == stage.engine.questions


async def test_ctrl_c_copies_the_selection_and_neither_stops_nor_quits() -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await ask(pilot, "What is copied?", brings=lambda: "What is copied?" in stage.text)
        transcript = stage.app.query_one(Transcript)
        stage.app.screen.selections = {transcript: Selection(None, None)}
        await press(pilot, "ctrl+c", brings=lambda: "What is copied?" in stage.app.clipboard)
        assert stage.asking
        assert Stop() not in stage.engine.commands
        assert stage.app.screen.get_selected_text() is None


async def test_ctrl_c_quits_only_at_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.screens.chat.screen.QUIT_SECONDS", patience())  # a machine at work takes longer
    async with Stage().ready() as (pilot, stage):
        await press(pilot, "ctrl+c", brings=lambda: stage.notices == ["Ctrl+C again quits."])
        assert stage.app.return_value is None
        await press(pilot, "ctrl+c", brings=lambda: stage.app.return_value == 0)


@pytest.mark.parametrize("paused", [False, True])
async def test_leaving_closes_the_engine_also_in_the_middle_of_an_answer(paused: bool) -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await begun(pilot, stage, 3)
        if paused:
            await until(lambda: stage.pace_has_keys, pilot)
            await press(pilot, "space", brings=lambda: stage.engine.pace == 0)
        await pilot.press("ctrl+q")
    assert stage.app.return_code == 0
    assert stage.engine.closed


@pytest.mark.parametrize("goes_on", [False, True])
async def test_leaving_in_the_middle_of_an_answer_keeps_it_as_escape_does(tmp_path: Path, goes_on: bool) -> None:
    store = ConversationStore(tmp_path)
    async with Stage(FakeEngine(hold_steps=True), store=store).running() as (pilot, stage):
        await begun(pilot, stage, 4)
        if goes_on:
            await press(pilot, "escape", brings=lambda: not stage.asking)
            before = store.conversations()[0].exchanges[0]
            async with brings(lambda: "keeps what" in stage.text, pilot):
                await ask(pilot, "/continue")
                stage.engine.release(4)
        await pilot.press("ctrl+q")
    (kept,) = ConversationStore(tmp_path).conversations()
    (one,) = kept.exchanges
    assert one.question == "One?" and one.answer and one.answer != ANSWER and ANSWER.startswith(one.answer)
    if goes_on:
        assert one.answer.startswith(before.answer) and len(one.token_ids) > len(before.token_ids)
    assert one.model == "demo" and len(one.token_ids) >= 4


async def test_an_answer_that_was_complete_is_not_kept_twice_by_leaving_before_it_goes_on(tmp_path: Path) -> None:
    stage = Stage(FakeEngine(answers=("An answer.",)), store=ConversationStore(tmp_path))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        stage.session.conversation.continuing = True  # the engine has not begun with it
        await pilot.press("ctrl+q")
    (kept,) = ConversationStore(tmp_path).conversations()
    assert [one.answer for one in kept.exchanges] == ["An answer."]
