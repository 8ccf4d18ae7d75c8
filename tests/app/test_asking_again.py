"""The last question once more: answered again, or edited in the prompt."""

from pathlib import Path

import pytest
from textual.selection import Selection

from ladechat.session.conversations.store import ConversationStore
from ladechat.session.recordings.recording import Recording
from ladechat.widgets.presenter import RESTORED
from tests.app.listed import ANSWERS, kept, new_stage, show_list, three
from tests.app.stage import Stage, answered, ask, replaying
from tests.app.test_race_from_chat import raced
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until


def editing(stage: Stage) -> bool:
    """Does the line say so above the prompt?"""
    return stage.app.query_one("#editing").display


async def test_a_question_that_the_cache_holds_is_not_said_to_be_read_while_its_answer_comes() -> None:
    stage = Stage(FakeEngine(hold_steps=True))
    stage.engine.prompt_cached = True
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?", brings=lambda: stage.activity == "reading the question …")
        await act(pilot, lambda: stage.engine.release(2), brings=lambda: stage.activity == "answering …")


async def test_ctrl_r_has_the_last_question_answered_once_more(tmp_path: Path) -> None:
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        await press(pilot, "ctrl+r", brings=lambda: "third answer" in stage.text and not stage.asking)
        assert "second answer" not in stage.text and stage.text.count("Two?") == 1
        said = [message.content for message in stage.engine.questions[2].messages]
        assert said == ["One?", "first answer", "Two?"]
        assert "temperature 0" in stage.notice
    (path,) = (tmp_path / "talks").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    for count in range(3, len(lines)):  # as a crash at any moment would have left it
        path.write_bytes(b"".join(lines[:count]))
        assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["first answer", "second answer"]
    path.write_bytes(b"".join(lines))
    assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["first answer", "third answer"]


async def test_the_last_question_is_edited_and_it_and_its_answer_stay_until_the_new_one_is_sent(tmp_path: Path) -> None:
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await press(pilot, "x", "ctrl+t", brings=lambda: "in the prompt first" in stage.notice and not editing(stage))
        async with brings(lambda: editing(stage) and stage.prompt == "One?", pilot):
            await pilot.press("backspace", "ctrl+t", "ctrl+b", "escape")
        await press(pilot, "!", "escape", brings=lambda: not editing(stage) and stage.prompt == "")
        await press(pilot, "ctrl+z", brings=lambda: not editing(stage) and stage.prompt == "One?!")
        await answered(pilot, stage, "Two?", times=2)
        async with brings(
            lambda: editing(stage) and "first answer" in stage.text and "second answer" in stage.text, pilot
        ):
            await pilot.press("ctrl+t", "backspace", *" now?")
        await press(pilot, "enter", brings=lambda: "third answer" in stage.text and not stage.asking)
        assert "second answer" not in stage.text and not editing(stage)
        said = [message.content for message in stage.engine.questions[2].messages]
        assert said == ["One?", "first answer", "Two now?"]
        await press(pilot, "ctrl+t", brings=lambda: editing(stage))
    assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["first answer", "third answer"]


WAYS_TO_FAIL = ("refused", "stopped", "broken off", "engine died", "engine died at once", "started again")


@pytest.mark.parametrize("how", WAYS_TO_FAIL)
@pytest.mark.parametrize("keys", [["ctrl+r"], ["ctrl+t", "!", "enter"]], ids=["again", "edited"])
async def test_an_answer_whose_replacement_does_not_come_is_on_the_screen_again_and_is_replaced_later(
    tmp_path: Path, keys: list[str], how: str
) -> None:
    third = FakeEngine(answers=ANSWERS[2:])
    stage = Stage(FakeEngine(answers=ANSWERS), third, store=ConversationStore(tmp_path / "talks"))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        asked = "Two?!" if len(keys) > 1 else "Two?"
        stage.engine.hold()
        if how == "refused":
            stage.engine.fail_next = "message_too_long"
        await press(pilot, *keys, brings=lambda: len(stage.engine.questions) == 3)
        if how in ("broken off", "engine died"):
            stage.engine.release(1)
            await until(lambda: "third" in stage.text, pilot)
        match how:
            case "stopped":
                await pilot.press("escape")
            case "broken off":
                stage.engine.break_off()
            case "engine died" | "engine died at once":
                stage.engine.die()
            case "started again":
                await pilot.press("f5")
        await until(lambda: not stage.asking and RESTORED in " ".join(stage.text.split()), pilot)
        assert "second answer" in stage.text and "first answer" in stage.text
        assert [one.answer for one in kept(tmp_path)[0].exchanges] == ["first answer", "second answer"]
        assert editing(stage) and stage.prompt == asked
        if how.startswith("engine"):
            await pilot.press("f5")
        await until(lambda: stage.activity == "ready", pilot)
        stage.engine.release()
        async with brings(lambda: not stage.asking and len(kept(tmp_path)[0].exchanges[1].answer) != 13, pilot):
            await pilot.press("enter")
        assert "second answer" not in stage.text and not editing(stage)
    replaced = kept(tmp_path)[0].exchanges
    assert [one.question for one in replaced] == ["One?", asked]


async def test_what_is_typed_while_a_replacement_fails_is_a_question_of_its_own(tmp_path: Path) -> None:
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        stage.engine.hold()
        await press(pilot, "ctrl+r", "x", brings=lambda: stage.asking)
        await act(pilot, stage.engine.break_off, brings=lambda: not stage.asking)
        assert stage.prompt == "x" and not editing(stage)
        stage.engine.release()
        await press(pilot, "enter", brings=lambda: stage.prompt == "" and not stage.asking)
    assert [one.question for one in kept(tmp_path)[0].exchanges] == ["One?", "x"]


@pytest.mark.parametrize("refused", [False, True], ids=["broken off", "refused"])
async def test_the_last_question_that_was_answered_is_edited_and_replaced_below_one_that_failed(
    tmp_path: Path, refused: bool
) -> None:
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        stage.engine.hold()
        stage.engine.fail_next = "message_too_long" if refused else None
        await ask(pilot, "Two?", brings=lambda: len(stage.engine.questions) == 2)
        if not refused:
            stage.engine.release(1)
            stage.engine.break_off()
        await until(lambda: stage.prompt == "Two?", pilot)
        await press(pilot, "ctrl+u", "ctrl+t", brings=lambda: editing(stage) and stage.prompt == "One?")
        stage.engine.release()
        await press(pilot, "!", "enter", brings=lambda: not stage.asking and stage.prompt == "")
        assert "One?!" in stage.text and "Two?" not in stage.text
    assert [one.question for one in kept(tmp_path)[0].exchanges] == ["One?!"]


@pytest.mark.full
async def test_what_else_is_begun_ends_the_editing_and_takes_nothing_away(tmp_path: Path) -> None:
    chat = FakeEngine(answers=("an answer",))
    async with Stage(chat, FakeEngine(), store=ConversationStore(tmp_path / "talks")).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        for keys in (["ctrl+u", "shift+tab"], ["ctrl+u", *"/look", "enter"], ["!", "ctrl+r"]):
            await press(pilot, "ctrl+t", brings=lambda: editing(stage))
            await press(pilot, *keys, brings=lambda: not editing(stage) and stage.prompt == "" and not stage.asking)
        assert len(chat.questions) == 2 and stage.text.count("One?") == 1
        await pilot.press("ctrl+t", "!")
        await raced(pilot, "f9")
        await press(pilot, "escape", brings=stage.in_front)
        assert not editing(stage) and stage.prompt == "One?!"
        async with brings(lambda: editing(stage), pilot):
            await pilot.press("ctrl+u", "ctrl+t", "ctrl+u", *"Two?")  # cleared, and typed anew
        await press(pilot, "ctrl+l", brings=lambda: not editing(stage) and stage.prompt == "")
    assert [one.question for one in kept(tmp_path)[0].exchanges] == ["One?"]


@pytest.mark.full
async def test_a_replay_shows_what_was_opened_and_taken_back(tmp_path: Path) -> None:
    three(tmp_path)
    stage = new_stage(tmp_path)
    stage.recorder.start(tmp_path / "talk.jsonl")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "Before?")
        await show_list(pilot, stage, 4)
        await press(pilot, "down", "enter", brings=stage.in_front)
        await answered(pilot, stage, "Once?")
        await press(pilot, "ctrl+r", brings=lambda: "third answer" in stage.text and not stage.asking)
        async with brings(lambda: "Once?!" in stage.text and not stage.asking, pilot):
            await pilot.press("ctrl+t", "escape", "ctrl+t", "!", "enter")
        stage.engine.fail_next = "message_too_long"
        await press(pilot, "ctrl+r", brings=lambda: RESTORED in " ".join(stage.text.split()))
        shown = stage.text
    recording = Recording.read(tmp_path / "talk.jsonl")
    assert recording.closed and recording.notices == []
    async with replaying(recording, playing=True) as (pilot, _, screen):

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
