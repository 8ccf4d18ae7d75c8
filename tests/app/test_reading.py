"""Another conversation read while one is answered, and the title that stands above the conversation."""

from pathlib import Path

from msgspec.structs import replace
from textual.widgets import Input, Label

from ladechat.preferences import NOTHING_SAVED
from ladechat.protocol import encode, packed
from ladechat.screens.chat.saved_conversations import STILL_ANSWERED
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.screens.reading import ReadingScreen
from ladechat.session.conversations.saved import Answered
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.bars.find_bar import FindBar
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.listed import kept, new_stage, rows, show_list, shown, three
from tests.app.stage import Stage, answered, ask, begun, shows
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import act, brings, press, until
from tests.widgets.sample_steps import step


def answering(tmp_path: Path) -> Stage:
    return Stage(FakeEngine(hold_steps=True), store=ConversationStore(tmp_path / "talks"))


def title(stage: Stage) -> str:
    label = stage.app.query_one("#conversation-title", Label)
    return str(label.content) if label.display else ""


async def test_another_conversation_is_read_while_one_is_answered(tmp_path: Path) -> None:
    three(tmp_path)
    stage = answering(tmp_path)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await begun(pilot, stage, 2)
        await show_list(pilot, stage, 3)
        async with brings(lambda: len(rows(stage)) == 1, pilot):
            await pilot.press(*"store")
        await press(pilot, "enter", brings=shows(pilot, ReadingScreen))
        screen = stage.app.screen
        await until(lambda: screen.get_selected_text() == "store", pilot)
        assert "What is the pool? · 03 Jan 2020, 12:00" in str(screen.query_one("#head", Label).content)
        await press(pilot, "ctrl+f", *"pool", brings=lambda: screen.get_selected_text() == "pool")
        assert screen.query_one(FindBar).query_one(Input).has_focus
        await press(pilot, "escape", brings=lambda: screen.query_one(Transcript).has_focus)
        await press(pilot, "enter", brings=lambda: stage.in_front() and STILL_ANSWERED in stage.notices)
        await act(pilot, stage.engine.release, brings=lambda: not stage.asking)
        assert "One?" in stage.text and "A store of n-grams." not in stage.text


async def test_what_was_read_opens_once_the_answer_has_ended(tmp_path: Path) -> None:
    three(tmp_path)
    stage = answering(tmp_path)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await begun(pilot, stage, 2)
        await show_list(pilot, stage, 3)
        await press(pilot, "enter", brings=shows(pilot, ReadingScreen))
        screen = stage.app.screen
        await until(lambda: any("A store of n-grams." in line.text for line in shown(screen.query_one(Transcript))))
        await act(pilot, stage.engine.release, brings=lambda: not stage.session.asking)
        await press(pilot, "enter", brings=lambda: stage.in_front() and "A store of n-grams." in stage.text)
        assert title(stage) == "What is the pool? · 03 Jan 2020, 12:00"
    assert len(kept(tmp_path)) == 4


async def test_what_another_variant_says_is_read_there(tmp_path: Path) -> None:
    said = exchange("One?"), exchange("Why?", "The lighthouse."), exchange("How?", "By day.")
    with write(tmp_path / "talks", "a", *said).open("ab") as file:
        file.write(encode(Answered(when="2030-01-02T12:00:00", exchange=exchange("Why?", "A pool."), after=0)))
    stage = answering(tmp_path)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await begun(pilot, stage, 2)
        await show_list(pilot, stage, 1)
        await press(pilot, *"lighthouse", brings=lambda: "another variant: … The lighthouse. …" in rows(stage)[0])
        await press(pilot, "enter", brings=shows(pilot, ReadingScreen))
        await until(lambda: stage.app.screen.get_selected_text() == "lighthouse", pilot)
        assert "· 3 questions ·" in str(stage.app.screen.query_one("#head", Label).content)
        lines = " ".join(line.text for line in shown(stage.app.screen.query_one(Transcript)))
        assert "By day." in lines and "A pool." not in lines
        await act(pilot, stage.engine.release, brings=lambda: not stage.session.asking)
        await press(pilot, "enter", brings=lambda: stage.in_front() and "By day." in stage.text)
        assert stage.screen.get_selected_text() == "lighthouse" and "A pool." not in stage.text


async def test_escape_leaves_what_is_read_and_the_conversation_is_as_it_was(tmp_path: Path) -> None:
    three(tmp_path)
    stage = answering(tmp_path)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await begun(pilot, stage, 2)
        await show_list(pilot, stage, 3)
        await press(pilot, "enter", brings=shows(pilot, ReadingScreen))
        await press(pilot, "ctrl+g", "ctrl+n", "escape", brings=stage.in_front)
        assert stage.asking and not stage.notices


async def test_the_title_stands_above_the_conversation_and_can_be_given(tmp_path: Path) -> None:
    async with new_stage(tmp_path).ready() as (pilot, stage):
        assert title(stage) == ""
        await answered(pilot, stage, "What is  W?")
        await until(lambda: title(stage) == "What is W?", pilot)
        await ask(pilot, "/rename Windows [and] pools", brings=lambda: title(stage) == "Windows [and] pools")
        assert kept(tmp_path)[0].title == "Windows [and] pools"
        await ask(pilot, "/rename", brings=lambda: title(stage) == "What is W?")
        assert stage.notice == "The title is the first question again."
        await ask(pilot, "/rename Kept", brings=lambda: title(stage) == "Kept")
        await press(pilot, "ctrl+l", brings=lambda: title(stage) == "")
        await ask(pilot, "/rename Before the first", brings=lambda: title(stage) == "Before the first")
        await answered(pilot, stage, "And N?")
    assert {one.title for one in kept(tmp_path)} == {"Kept", "Before the first"}


async def test_a_title_that_is_given_in_the_list_stands_above_the_conversation_too(tmp_path: Path) -> None:
    async with new_stage(tmp_path).ready() as (pilot, stage):
        await answered(pilot, stage, "What is W?")
        await press(pilot, "ctrl+o", brings=shows(pilot, ConversationsScreen))
        await until(lambda: len(rows(stage)) == 1, pilot)
        await press(pilot, "f2", "ctrl+u", *"Width", "enter", brings=lambda: "Width" in rows(stage)[0])
        await press(pilot, "escape", brings=lambda: stage.in_front() and title(stage) == "Width")


async def test_a_conversation_that_is_not_saved_has_no_title() -> None:
    async with Stage(FakeEngine(answers=("Yes.",))).ready() as (pilot, stage):
        await answered(pilot, stage, "One?")
        assert title(stage) == ""
        await ask(pilot, "/rename Title", brings=lambda: stage.notice == NOTHING_SAVED)


async def test_f4_pins_a_conversation_to_the_top(tmp_path: Path) -> None:
    three(tmp_path)
    async with new_stage(tmp_path).ready() as (pilot, stage):
        await show_list(pilot, stage, 3)
        await press(pilot, "down", "down", "f4", brings=lambda: rows(stage)[0].startswith("Hello?\npinned"))
        await press(pilot, "f4", brings=lambda: "pinned" not in "".join(rows(stage)))
        assert rows(stage)[2].startswith("Hello?")


async def test_a_found_place_is_shown_behind_an_answer_that_has_thoughts_alone(tmp_path: Path) -> None:
    thoughts = [replace(step(["Hm"]), reasoning=1)]
    later = [exchange(f"Question {number}?", "Yes. " * 200) for number in range(3)]
    write(tmp_path / "talks", "a", replace(exchange("Why?", ""), steps=packed(thoughts)), *later, exchange("A store?"))
    stage = answering(tmp_path)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await begun(pilot, stage, 2)
        await show_list(pilot, stage, 1)
        await press(pilot, *"store", brings=lambda: "store" in rows(stage)[0])
        await press(pilot, "enter", brings=shows(pilot, ReadingScreen))
        await until(lambda: stage.app.screen.get_selected_text() == "store", pilot)
        await act(pilot, stage.engine.release, brings=lambda: not stage.session.asking)
