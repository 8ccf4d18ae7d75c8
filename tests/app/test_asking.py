"""What is asked, shown, sent and kept."""

import pytest

from ladechat.protocol import Loading, Message
from ladechat.screens.view import welcome
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.prompt.above_prompt import WaitingQuestions, rows
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import SHOWN_ANSWER, Stage, answered, ask
from tests.fake_engine import ANSWER, FakeEngine
from tests.waiting import brings, until


async def test_escape_stops_a_download_and_a_restart_goes_on_with_it() -> None:
    stage = Stage(FakeEngine(hold_loading=True), FakeEngine())
    async with stage.app.run_test() as pilot:
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
        async with brings(lambda: len(stage.started) == 2 and stage.activity == "ready", pilot):
            await pilot.press("f5")


async def test_a_question_asked_while_loading_is_shown_at_once_and_answered_when_ready() -> None:
    stage = Stage(FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        await until(lambda: "reading the weights" in stage.activity, pilot)
        async with brings(lambda: "What is a window?" in stage.text, pilot):
            await ask(pilot, "What is a window?")
        assert stage.prompt == ""
        assert "pool" not in stage.text
        async with brings(lambda: not stage.asking, pilot):
            stage.engine.finish_loading()
        assert SHOWN_ANSWER in stage.text
        assert stage.text.index("You") < stage.text.index("What is a window?") < stage.text.index("demo model")
        assert stage.activity == "ready"


async def test_escape_calls_off_at_once_what_waits_for_the_model_to_load() -> None:
    stage = Stage(FakeEngine(hold_loading=True))
    async with stage.app.run_test() as pilot:
        await until(lambda: "reading the weights" in stage.activity, pilot)
        async with brings(lambda: "1 question waits" in stage.status, pilot):
            await ask(pilot, "One?")
            await ask(pilot, "Two?")
        async with brings(lambda: stage.prompt == "One?" and "waits" not in stage.status, pilot):
            await pilot.press("escape")
        assert "Not asked: the model was still loading." in stage.text
        assert stage.asking and "reading the weights" in stage.activity, "the next one has taken its place"
        async with brings(lambda: not stage.asking, pilot):
            await pilot.press("escape")
        assert stage.prompt == "One?", "what stands there is not replaced"
        await pilot.press("ctrl+u")
        async with brings(lambda: stage.prompt == "Two?", pilot):
            await pilot.press("up")
        async with brings(lambda: stage.activity == "ready", pilot):
            stage.engine.finish_loading()
        assert stage.engine.questions == [] and SHOWN_ANSWER not in stage.text
        await answered(pilot, stage, "Three?")
        assert [question.messages[-1].content for question in stage.engine.questions] == ["Three?"]


async def test_the_second_question_takes_the_whole_conversation_and_the_token_ids_along() -> None:
    stage = Stage(system="Be brief.")
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        first, second = stage.engine.questions
        assert [first.turn, second.turn] == [1, 2]
        assert first.messages == [Message(role="system", content="Be brief."), Message(role="user", content="One?")]
        assert second.messages[:2] == first.messages
        answer = second.messages[2]
        assert (answer.role, answer.content) == ("assistant", ANSWER)
        assert answer.token_ids
        assert second.messages[3:] == [Message(role="user", content="Two?")]


async def test_questions_during_an_answer_wait_and_are_asked_in_order() -> None:
    stage = Stage(FakeEngine(answers=("first answer", "second answer", "third answer"), hold_steps=True))
    async with stage.app.run_test() as pilot:
        async with brings(lambda: stage.asking, pilot):
            await ask(pilot, "One?")
        async with brings(lambda: "2 questions wait" in stage.status, pilot):
            await ask(pilot, "Two?")
            await ask(pilot, "Three?")
        assert len(stage.engine.questions) == 1
        async with brings(lambda: "third answer" in stage.text and not stage.asking, pilot):
            stage.engine.release()
        said = [stage.text.index(part) for part in ("One?", "first answer", "Two?", "second answer", "Three?", "third")]
        assert said == sorted(said)
        assert "wait" not in stage.status


async def test_questions_that_wait_are_seen_and_the_last_one_is_taken_back_for_editing() -> None:
    stage = Stage(FakeEngine(answers=("first answer", "second answer", "third answer"), hold_steps=True))
    async with stage.app.run_test(size=(80, 24)) as pilot:
        shown = stage.app.query_one(WaitingQuestions)
        async with brings(lambda: stage.asking, pilot):
            await ask(pilot, "One?")
        async with brings(lambda: stage.prompt == "One?", pilot):
            await pilot.press("up")
        async with brings(lambda: shown.region.height == 3, pilot):
            await ask(pilot, "[b]Two?\nand more")
            await ask(pilot, " /Three?" * 30)
        assert [shown.render_line(y).text.split()[1] for y in (1, 2)] == ["[b]Two?", "/Three?"]
        assert shown.render_line(2).text.rstrip().endswith("…")
        assert shown.region.bottom == stage.app.query_one(Prompt).region.y

        await until(lambda: "up" in stage.app.query_one(Prompt).passed_on, pilot)
        async with brings(lambda: stage.prompt.startswith(" /Three? /Three?"), pilot):
            await pilot.press("up")
        await until(lambda: shown.region.height == 2, pilot)
        async with brings(lambda: "third answer" in stage.text and not stage.asking, pilot):
            await ask(pilot, "Three!")
            stage.engine.release()
        asked = [question.messages[-1].content for question in stage.engine.questions]
        assert asked == ["One?", "[b]Two?\nand more", "Three!"]
        assert not shown.display and stage.prompt == ""
        async with brings(lambda: stage.prompt == "Three!", pilot):
            await pilot.press("up")


def test_of_many_questions_that_wait_the_first_and_the_last_are_shown() -> None:
    assert rows(("one", "two", "three")) == ["» one", "» two", "» three"]
    assert rows(("one", "two", "three", "four", "five\n!")) == ["» one", "  … 3 more …", "» five !"]


async def test_an_empty_question_is_not_sent() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await ask(pilot, "   ")
        async with brings(lambda: len(stage.engine.questions) == 1, pilot):
            await ask(pilot, "Something")
        assert stage.engine.questions[0].messages[-1].content == "Something"


async def test_the_prompt_takes_several_lines_and_brings_back_what_was_asked() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: stage.engine.questions and not stage.asking, pilot):
            await pilot.press("a", "ctrl+j", "b", "enter")
        assert stage.engine.questions[0].messages[-1].content == "a\nb"
        async with brings(lambda: stage.prompt == "a\nb", pilot):
            await pilot.press("up")
        async with brings(lambda: stage.prompt == "", pilot):
            await pilot.press("down")


async def test_up_and_down_move_within_a_question_that_fills_several_rows() -> None:
    stage = Stage()
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        long = "word " * 60
        prompt = stage.app.query_one(Prompt)
        prompt.load_text(long)
        prompt.move_cursor(prompt.document.end)
        end = prompt.cursor_location
        async with brings(lambda: prompt.cursor_location != end, pilot):
            await pilot.press("up")
        async with brings(lambda: prompt.cursor_location == end, pilot):
            await pilot.press("down", "down")
        assert stage.prompt == long
        async with brings(lambda: stage.prompt == "One?", pilot):
            prompt.move_cursor((0, 0))
            await pilot.press("up")


async def test_the_welcome_is_said_first_and_not_sent() -> None:
    stage = Stage(welcome=welcome("demo"))
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        assert not stage.app.query_one(Transcript).max_scroll_y
        for panel in stage.app.query_one(SidePanels).query(Panel):
            width, height = panel.content_size
            assert not width or len(panel.rows(width, height)) <= height, "its first words are cut"
        await answered(pilot, stage, "One?")
        assert " ".join(stage.text.split()).startswith("Words of one colour") and "F6 slows" in stage.text
        assert [message.content for message in stage.engine.questions[0].messages] == ["One?"]


async def test_a_question_that_is_too_long_stays_in_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.screens.chat.questions.MOST_TEXT", 10)
    stage = Stage()
    async with stage.app.run_test() as pilot:
        async with brings(lambda: "More than 10 characters are not sent" in stage.notice, pilot):
            await ask(pilot, "more than ten characters")
        assert stage.prompt == "more than ten characters" and stage.engine.questions == []
