"""What is asked, shown, sent and kept."""

import pytest

from ladechat.protocol import Loading
from ladechat.screens.view import welcome
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.prompt.above_prompt import WaitingQuestions, rows
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import SHOWN_ANSWER, Stage, answered, ask
from tests.fake_engine import FakeEngine
from tests.waiting import act, brings, press, until


async def test_escape_stops_a_download_and_a_restart_goes_on_with_it() -> None:
    async with Stage(FakeEngine(hold_loading=True), FakeEngine()).running() as (pilot, stage):
        await until(lambda: bool(stage.activity), pilot)
        doing = "fetching what is not cached"
        async with brings(lambda: doing in stage.activity, pilot):
            stage.engine._say(
                Loading(stage=1, stages=4, doing=doing, fraction=0.5, done_bytes=10**9, total_bytes=2 * 10**9)
            )
        async with brings(lambda: "The download was stopped; what has come is kept" in stage.text, pilot):
            await ask(pilot, "One?")
            await pilot.press("escape")
        assert stage.started[0].closed
        assert stage.prompt == "One?"
        await press(pilot, "f5", brings=lambda: len(stage.started) == 2 and stage.activity == "ready")


async def test_a_question_asked_while_loading_is_shown_at_once_and_answered_when_ready() -> None:
    async with Stage(FakeEngine(hold_loading=True)).running() as (pilot, stage):
        await until(lambda: "reading the weights" in stage.activity, pilot)
        await ask(pilot, "What is a window?", brings=lambda: "What is a window?" in stage.text)
        assert stage.prompt == "" and "pool" not in stage.text
        assert "reading the weights" in stage.activity
        await act(pilot, stage.engine.finish_loading, brings=lambda: not stage.asking)
        assert SHOWN_ANSWER in stage.text
        assert stage.text.index("You") < stage.text.index("What is a window?") < stage.text.index("demo model")
        assert stage.activity == "ready"


async def test_escape_calls_off_at_once_what_waits_for_the_model_to_load() -> None:
    async with Stage(FakeEngine(hold_loading=True)).running() as (pilot, stage):
        await until(lambda: "reading the weights" in stage.activity, pilot)
        async with brings(lambda: "1 question waits" in stage.status, pilot):
            await ask(pilot, "One?")
            await ask(pilot, "Two?")
        await press(pilot, "escape", brings=lambda: stage.prompt == "One?" and "waits" not in stage.status)
        assert "Not asked: the model was still loading." in stage.text
        assert stage.asking and "reading the weights" in stage.activity, "the next one has taken its place"
        await press(pilot, "escape", brings=lambda: not stage.asking)
        assert stage.prompt == "One?", "what stands there is not replaced"
        await pilot.press("ctrl+u")
        await press(pilot, "up", brings=lambda: stage.prompt == "Two?")
        await act(pilot, stage.engine.finish_loading, brings=lambda: stage.activity == "ready")
        assert stage.engine.questions == [] and SHOWN_ANSWER not in stage.text
        await answered(pilot, stage, "Three?")
        assert stage.asked == ["Three?"]


async def test_questions_that_wait_are_seen_and_asked_in_order_and_the_last_one_is_taken_back_for_editing() -> None:
    stage = Stage(FakeEngine(answers=("first answer", "second answer", "third answer"), hold_steps=True))
    async with stage.app.run_test(size=(80, 24)) as pilot:
        shown = stage.app.query_one(WaitingQuestions)
        await ask(pilot, "One?", brings=lambda: stage.asking)
        await press(pilot, "up", brings=lambda: stage.prompt == "One?")
        async with brings(lambda: shown.region.height == 3, pilot):
            await ask(pilot, "[b]Two?\nand more")
            await ask(pilot, " /Three?" * 30)
        assert "2 questions wait" in stage.status and stage.asked == ["One?"]
        assert [shown.render_line(y).text.split()[1] for y in (1, 2)] == ["[b]Two?", "/Three?"]
        assert shown.render_line(2).text.rstrip().endswith("…")
        assert shown.region.bottom == stage.app.query_one(Prompt).region.y

        await until(lambda: "up" in stage.app.query_one(Prompt).passed_on, pilot)
        await press(pilot, "up", brings=lambda: stage.prompt.startswith(" /Three? /Three?"))
        await until(lambda: shown.region.height == 2, pilot)
        async with brings(lambda: "third answer" in stage.text and not stage.asking, pilot):
            await ask(pilot, "Three!")
            stage.engine.release()
        assert stage.asked == ["One?", "[b]Two?\nand more", "Three!"]
        said = ("One?", "first answer", "[b]Two?", "second answer", "Three!", "third answer")
        assert sorted(said, key=stage.text.index) == list(said)
        assert not shown.display and stage.prompt == "" and "wait" not in stage.status
        await press(pilot, "up", brings=lambda: stage.prompt == "Three!")


def test_of_many_questions_that_wait_the_first_and_the_last_are_shown() -> None:
    assert rows(("one", "two", "three")) == ["» one", "» two", "» three"]
    assert rows(("one", "two", "three", "four", "five\n!")) == ["» one", "  … 3 more …", "» five !"]


async def test_the_prompt_takes_several_lines_and_brings_back_what_was_asked_but_an_empty_question_is_not_sent() -> (
    None
):
    async with Stage().ready() as (pilot, stage):
        await ask(pilot, "   ")
        stage.app.query_one(Prompt).load_text("")
        await press(pilot, "a", "ctrl+j", "b", "enter", brings=lambda: stage.engine.questions and not stage.asking)
        assert stage.engine.questions[0].messages[-1].content == "a\nb"
        await press(pilot, "up", brings=lambda: stage.prompt == "a\nb")
        await press(pilot, "down", brings=lambda: stage.prompt == "")


async def test_up_and_down_move_within_a_question_that_fills_several_rows() -> None:
    async with Stage().running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        long = "word " * 60
        prompt = stage.app.query_one(Prompt)
        prompt.load_text(long)
        prompt.move_cursor(prompt.document.end)
        end = prompt.cursor_location
        await press(pilot, "up", brings=lambda: prompt.cursor_location != end)
        await press(pilot, "down", "down", brings=lambda: prompt.cursor_location == end)
        assert stage.prompt == long
        async with brings(lambda: stage.prompt == "One?", pilot):
            prompt.move_cursor((0, 0))
            await pilot.press("up")


async def test_the_welcome_is_said_first_and_not_sent() -> None:
    async with Stage(welcome=welcome("auto")).ready(size=(80, 24)) as (pilot, stage):
        assert not stage.app.query_one(Transcript).max_scroll_y
        for panel in stage.app.query_one(SidePanels).query(Panel):
            width, height = panel.content_size
            assert not width or len(panel.rows(width, height)) <= height, "its first words are cut"
        await answered(pilot, stage, "One?")
        assert " ".join(stage.text.split()).startswith("ladechat: words of one colour") and "F6 slows" in stage.text
        assert [message.content for message in stage.engine.questions[0].messages] == ["One?"]


def test_without_colours_the_welcome_speaks_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    said = welcome("auto")
    assert said.startswith("ladechat: words marked alike come from one pass") and "colour" not in said


async def test_a_question_that_is_too_long_stays_in_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.screens.chat.questions.MOST_TEXT", 10)
    async with Stage().running() as (pilot, stage):
        async with brings(lambda: "More than 10 characters are not sent" in stage.notice, pilot):
            await ask(pilot, "more than ten characters")
        assert stage.prompt == "more than ten characters" and stage.engine.questions == []
