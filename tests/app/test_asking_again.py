"""The last question once more: answered again, or edited in the prompt."""

from pathlib import Path

import pytest
from textual.selection import Selection

from ladechat.app import LadechatApp
from ladechat.screens.replay import ReplayScreen
from ladechat.session.conversation_store import ConversationStore
from ladechat.session.replay import Recording
from tests.app.stage import Stage, answered, ask, wait_until
from tests.app.test_conversations import (
    back_in_chat,
    kept,
    new_stage,
    show_list,
    three,
)
from tests.app.test_race_from_chat import raced
from tests.fake_engine import FakeEngine


def editing(stage: Stage) -> bool:
    """Does the line say so above the prompt?"""
    return stage.app.query_one("#editing").display


async def test_a_question_that_the_cache_holds_is_not_said_to_be_read_while_its_answer_comes() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    stage.engine.prompt_cached = True
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?")
        await wait_until(pilot, lambda: stage.activity == "reading the question …")
        stage.engine.release(2)
        await wait_until(pilot, lambda: stage.activity == "answering …")


async def test_ctrl_r_has_the_last_question_answered_once_more(tmp_path: Path) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        await pilot.press("ctrl+r")
        await wait_until(pilot, lambda: "third answer" in stage.text and not stage.asking)
        assert "second answer" not in stage.text and stage.text.count("Two?") == 1
        said = [message.content for message in stage.engine.questions[2].messages]
        assert said == ["One?", "first answer", "Two?"]
        assert "temperature 0" in stage.notices[-1]
    assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["first answer", "third answer"]


async def test_the_last_question_is_edited_and_it_and_its_answer_stay_until_the_new_one_is_sent(tmp_path: Path) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await pilot.press("x", "ctrl+t")
        assert "in the prompt first" in stage.notices[-1] and not editing(stage)
        await pilot.press("backspace", "ctrl+t", "ctrl+b", "escape")
        assert editing(stage) and stage.prompt == "One?"  # the look back was left first
        await pilot.press("!", "escape")
        assert not editing(stage) and stage.prompt == ""
        await pilot.press("ctrl+z")
        assert not editing(stage) and stage.prompt == "One?!"
        await answered(pilot, stage, "Two?", times=2)
        await pilot.press("ctrl+t", "backspace", *" now?")
        assert editing(stage) and "first answer" in stage.text and "second answer" in stage.text
        await pilot.press("enter")
        await wait_until(pilot, lambda: "third answer" in stage.text and not stage.asking)
        assert "second answer" not in stage.text and not editing(stage)
        said = [message.content for message in stage.engine.questions[2].messages]
        assert said == ["One?", "first answer", "Two now?"]
        await pilot.press("ctrl+t")
        assert editing(stage)  # and so the program ends
    assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["first answer", "third answer"]


@pytest.mark.full
async def test_what_else_is_begun_ends_the_editing_and_takes_nothing_away(tmp_path: Path) -> None:
    chat = FakeEngine(answers=("an answer",))
    stage = Stage(chat, FakeEngine(), store=ConversationStore(tmp_path / "talks"))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        for keys in (["ctrl+u", "shift+tab"], ["ctrl+u", *"/look", "enter"], ["!", "ctrl+r"]):
            await pilot.press("ctrl+t")
            assert editing(stage)
            await pilot.press(*keys)
            await wait_until(pilot, lambda: not editing(stage) and stage.prompt == "" and not stage.asking)
        assert len(chat.questions) == 2 and stage.text.count("One?") == 1
        await pilot.press("ctrl+t", "!")
        await raced(pilot, stage)
        await pilot.press("escape")
        await wait_until(pilot, lambda: stage.app.screen is stage.screen)
        assert not editing(stage) and stage.prompt == "One?!"
        await pilot.press("ctrl+u", "ctrl+t", "ctrl+u", *"Two?")  # cleared, and typed anew
        assert editing(stage)
        await pilot.press("ctrl+l")
        await wait_until(pilot, lambda: not editing(stage) and stage.prompt == "")
    assert [one.question for one in kept(tmp_path)[0].exchanges] == ["One?"]


@pytest.mark.parametrize("key", ["ctrl+r", "ctrl+t"])
async def test_there_is_nothing_to_take_back_before_an_answer(tmp_path: Path, key: str) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await wait_until(pilot, lambda: stage.activity == "ready")
        await pilot.press(key)
        await wait_until(pilot, lambda: stage.notices == ["Nothing has been answered yet."])


async def test_an_answered_question_is_edited_that_stands_above_one_that_failed(tmp_path: Path) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        stage.engine.fail_next = "message_too_long"
        await ask(pilot, "Three?")
        await wait_until(pilot, lambda: stage.prompt == "Three?")
        await pilot.press("ctrl+u", "ctrl+t")
        await wait_until(pilot, lambda: stage.prompt == "Two?")
        await pilot.press("backspace", *" now?", "enter")
        await wait_until(pilot, lambda: "third answer" in stage.text and not stage.asking)
        assert "One?" in stage.text and "Two?" not in stage.text and "Three?" not in stage.text


@pytest.mark.full
async def test_a_replay_shows_what_was_opened_and_taken_back(tmp_path: Path) -> None:
    three(tmp_path)
    stage = new_stage(tmp_path)
    stage.recorder.start(tmp_path / "talk.jsonl")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "Before?")
        await show_list(pilot, stage, 4)
        await pilot.press("down", "enter")
        await back_in_chat(pilot, stage)
        await answered(pilot, stage, "Once?")
        await pilot.press("ctrl+r")
        await wait_until(pilot, lambda: "third answer" in stage.text and not stage.asking)
        await pilot.press("ctrl+t", "escape", "ctrl+t", "!", "enter")
        await wait_until(pilot, lambda: "Once?!" in stage.text and not stage.asking)
        shown = stage.text
    recording = Recording.read(tmp_path / "talk.jsonl")
    assert recording.closed and recording.notices == []
    screen = ReplayScreen(recording)
    app = LadechatApp(screen)
    async with app.run_test() as pilot:
        await pilot.pause()

        def text_at(place: int) -> str:
            screen.go(place)
            chosen = screen.view.transcript.get_selection(Selection(None, None))
            return chosen[0] if chosen else ""

        places = range(len(recording.events) + 1)
        forward = [text_at(place) for place in places]
        assert forward[-1].split() == shown.split()
        assert [text_at(place) for place in reversed(places)] == forward[::-1]
        for place in places[1:]:  # there, one back, and on to the end
            assert [text_at(place), text_at(place - 1), text_at(places[-1])] == [
                *forward[place - 1 : place + 1][::-1],
                forward[-1],
            ]
