"""Conversations that people keep: begun anew, found, opened, renamed, deleted, taken back."""

import shutil
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.strip import Strip
from textual.widgets import Input, Label, OptionList

from ladechat.protocol import Message
from ladechat.screens.lists.conversations import NONE_FOUND, NONE_YET, ConversationsScreen
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.saved import SavedConversation
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets import flow
from ladechat.widgets.flow import Line, Run, wrap
from ladechat.widgets.presenter import REOPENED
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import Driver, Stage, answered, ask, burst, footer_names
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, forbid, write
from tests.waiting import brings, patience, until

WHO_GOES_ON = "Llama answered here last; demo model goes on with it. /model org/Llama takes that one."
ANSWERS = ("first answer", "second answer", "third answer")


def new_stage(tmp_path: Path, *answers: str, opened: SavedConversation | None = None) -> Stage:
    engine = FakeEngine(answers=answers or ANSWERS)
    return Stage(engine, store=ConversationStore(tmp_path / "talks"), opened=opened)


def kept(tmp_path: Path) -> list[SavedConversation]:
    return ConversationStore(tmp_path / "talks").conversations()


def three(tmp_path: Path) -> None:
    """Three conversations of other days."""
    write(tmp_path / "talks", "a", exchange("What is the pool?", "A store of n-grams."), when="2020-01-03T12:00:00")
    write(tmp_path / "talks", "b", exchange("Why W?", "The width.", model="org/Llama"), when="2020-01-02T12:00:00")
    write(tmp_path / "talks", "c", exchange("Hello?"), exchange("Again?"), when="2020-01-01T12:00:00")


def rows(stage: Stage) -> list[str]:
    listed = stage.app.screen.query_one(OptionList)
    return [str(option.prompt) for option in listed.options]


def shown(transcript: Transcript) -> list[Strip]:
    """The lines of a conversation that are in view."""
    return transcript.render_lines(transcript.size.region)


def said(stage: Stage) -> str:
    return str(stage.app.screen.query_one("#said", Label).content)


async def show_list(pilot: Driver, stage: Stage, count: int) -> None:
    async with lists(pilot, stage, count):
        await pilot.press("ctrl+o")


@asynccontextmanager
async def three_listed(tmp_path: Path) -> AsyncIterator[tuple[Driver, Stage]]:
    """Run an app whose list of three conversations is open."""
    three(tmp_path)
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await show_list(pilot, stage, 3)
        yield pilot, stage


def lists(pilot: Driver, stage: Stage, count: int) -> brings:
    """What is inside brings so many conversations onto the list."""
    return brings(lambda: isinstance(stage.app.screen, ConversationsScreen) and len(rows(stage)) == count, pilot)


def leads_back(pilot: Driver, stage: Stage) -> brings:
    """What is inside brings the chat back."""
    return brings(lambda: stage.app.screen is stage.screen, pilot)


async def test_what_is_answered_is_kept_and_a_new_conversation_says_so(tmp_path: Path) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        async with brings(lambda: "kept: Ctrl+O finds it" in stage.notice, pilot):
            await pilot.press("ctrl+l")
        assert "One?" not in stage.text
        await answered(pilot, stage, "Two?")
        assert [message.content for message in stage.engine.questions[1].messages] == ["Two?"]
    two, one = sorted(kept(tmp_path), key=lambda each: each.title, reverse=True)
    assert [(one.question, one.answer) for one in (*one.exchanges, *two.exchanges)] == [
        ("One?", "first answer"),
        ("Two?", "second answer"),
    ]
    assert one.model == "demo" and one.exchanges[0].decoder == "auto" and one.exchanges[0].token_ids


async def test_enter_opens_a_conversation_and_the_next_question_goes_on_with_it(tmp_path: Path) -> None:
    three(tmp_path)
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "Before?")
        await show_list(pilot, stage, 4)
        async with leads_back(pilot, stage):
            await pilot.press("down", "down", "down", "enter")
        assert stage.text.index("Hello?") < stage.text.index("Yes.") < stage.text.index("Again?")
        assert "Before?" not in stage.text
        await answered(pilot, stage, "On?")
        assert stage.engine.questions[-1].messages == [
            Message(role="user", content="Hello?"),
            Message(role="assistant", content="Yes.", token_ids=[5, 6]),
            Message(role="user", content="Again?"),
            Message(role="assistant", content="Yes.", token_ids=[5, 6]),
            Message(role="user", content="On?"),
        ]
    assert ["Hello?", "Again?", "On?"] in [[one.question for one in each.exchanges] for each in kept(tmp_path)]
    assert len(kept(tmp_path)) == 4


async def test_before_the_first_screen_no_more_of_a_long_conversation_is_laid_out_than_of_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid_out = dict[int, int]()
    for turns in (40, 2000):
        said = [exchange(f"Question {turn}?", f"Answer {turn}.") for turn in range(turns)]
        write(tmp_path / str(turns), "a", *said)
        store, wrapped = ConversationStore(tmp_path / str(turns)), list[object]()

        def wrap_counted(runs: Iterable[Run], width: int, *, wrapped: list[object] = wrapped) -> list[Line]:
            wrapped.append(runs)
            return wrap(runs, width)

        stage = Stage(FakeEngine(), store=store, opened=store.conversations()[0])
        with monkeypatch.context() as patch:
            patch.setattr(flow, "wrap", wrap_counted)
            patch.setattr(
                "ladechat.widgets.transcript.message_lines.call_later", lambda *_: None
            )  # before any further part
            async with stage.app.run_test() as pilot:
                transcript = stage.app.query_one(Transcript)
                await until(lambda: any("Answer" in line.text for line in shown(transcript)), pilot)
                laid_out[turns] = len(wrapped)
    assert laid_out[2000] == laid_out[40] < 2 * 40


async def test_tokens_of_another_model_are_not_sent_and_its_name_is_shown(tmp_path: Path) -> None:
    three(tmp_path)
    stage = new_stage(tmp_path, opened=kept(tmp_path)[1])
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.notice == WHO_GOES_ON, pilot)
        await answered(pilot, stage, "On?")
        assert stage.engine.questions[0].messages[1] == Message(role="assistant", content="The width.")
        assert "Llama" in stage.text


async def test_only_a_model_that_has_loaded_is_said_to_go_on_with_a_conversation(tmp_path: Path) -> None:
    three(tmp_path)
    other = kept(tmp_path)[1]
    loading = FakeEngine(hold_loading=True)
    stage = Stage(FakeEngine(hold_loading=True), loading, store=ConversationStore(tmp_path / "talks"), opened=other)
    async with stage.app.run_test() as pilot:
        await until(lambda: "reading the weights" in stage.activity, pilot)
        async with brings(lambda: "the engine has ended" in stage.activity, pilot):
            stage.engine.fail_fatally("model_not_found")
        assert stage.notices == []
        async with brings(lambda: "reading the weights" in stage.activity, pilot):
            await pilot.press("f5")
        async with brings(lambda: stage.notices == [WHO_GOES_ON], pilot):
            loading.finish_loading()


async def test_what_would_steer_the_terminal_is_made_visible_in_the_list(tmp_path: Path) -> None:
    write(tmp_path / "talks", "a", exchange("\x1b[2J[bold]One", "Yes \x1b[31m."), title="[red]\x1b]0;t\x07")
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await show_list(pilot, stage, 1)
        async with brings(lambda: "Yes" in rows(stage)[0], pilot):
            await pilot.press(*"yes")
        assert "\x1b" not in rows(stage)[0] and "[red]" in rows(stage)[0]
        async with brings(lambda: "[red]" in said(stage) and "\x1b" not in said(stage), pilot):
            await pilot.press("f8")


async def test_typing_searches_titles_and_texts(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        assert "2 questions" in rows(stage)[2] and "Llama" in rows(stage)[1] and "01 Jan 2020" in rows(stage)[2]
        async with lists(pilot, stage, 1):
            await pilot.press(*"N-GRAMS")
        assert "What is the pool?" in rows(stage)[0] and "A store of n-grams." in rows(stage)[0]
        async with lists(pilot, stage, 0):
            await pilot.press("x")
        assert said(stage) == NONE_FOUND
        async with leads_back(pilot, stage):
            await pilot.press("enter", "f2", "f8", "escape")
    assert len(kept(tmp_path)) == 3


async def test_a_conversation_that_was_found_by_a_word_opens_there_and_says_what_is_not_kept(tmp_path: Path) -> None:
    long = exchange("Tell me.", "line\n" * 100)
    write(tmp_path / "talks", "a", exchange("Where?", "It is Kept in a lighthouse."), long)
    stage = new_stage(tmp_path, "An answer.")
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        transcript = stage.app.query_one(Transcript)
        await show_list(pilot, stage, 1)
        async with brings(lambda: "lighthouse" in rows(stage)[0], pilot):
            await pilot.press(*"kept")  # the notice about what is not kept has that word too
        async with leads_back(pilot, stage):
            await pilot.press("enter")
        await until(lambda: stage.screen.get_selected_text() == "Kept", pilot)
        assert transcript.scroll_offset.y < 5 < transcript.max_scroll_y
        assert stage.text.count(REOPENED) == 1
        async with brings(lambda: stage.prompt == "Tell me.", pilot):
            await ask(pilot, "/edit")


async def test_a_phrase_opens_the_conversation_where_its_excerpt_is(tmp_path: Path) -> None:
    said = [exchange(f"Question {turn}?", f"Answer {turn}, in the\nwindow.") for turn in range(300)]
    said[100] = exchange("A keeper?", "Of the light\nhouse, and of the lamp.")
    said[200] = exchange("Lamp?", "The light of the lamp.")
    write(tmp_path / "talks", "a", *said)
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await show_list(pilot, stage, 1)
        async with brings(lambda: "… Of the light house, and of the lamp. …" in rows(stage)[0], pilot):
            await pilot.press(*"of", "space", *"the", "space", *"lamp")
        async with leads_back(pilot, stage):
            await pilot.press("enter")
        await until(lambda: stage.screen.get_selected_text() == "of the lamp", pilot)
        transcript = stage.app.query_one(Transcript)
        assert "house, and of the lamp." in "".join(line.text for line in shown(transcript))


async def test_rows_of_a_long_list_are_made_when_one_comes_near_them(tmp_path: Path) -> None:
    for number in range(100):
        write(
            tmp_path / "talks", f"{number:03}", exchange(f"Question {number}?"), when=f"2020-01-01T12:{number % 60:02}"
        )
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: "Conversations · 100" in str(stage.app.screen.query_one("#head", Label).content)):
            await pilot.press("ctrl+o")
            await until(lambda: isinstance(stage.app.screen, ConversationsScreen), pilot)
        assert len(rows(stage)) < 50
        listed = stage.app.screen.query_one(OptionList)
        async with brings(lambda: listed.highlighted == 99, pilot):
            await pilot.press(*["pagedown"] * 25)
        assert len(set(rows(stage))) == 100


async def test_a_list_whose_folder_or_file_cannot_be_read_says_so_and_lists_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(tmp_path)
    forbid(tmp_path / "talks" / "b.jsonl", monkeypatch)
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await show_list(pilot, stage, 2)
        assert "b.jsonl cannot be read: Permission denied" in said(stage)
        async with leads_back(pilot, stage):
            await pilot.press("escape")
        forbid(tmp_path / "talks", monkeypatch)
        await show_list(pilot, stage, 0)
        assert said(stage).startswith(f"{tmp_path / 'talks'} cannot be read: Permission denied")


async def test_a_list_without_conversations_says_so(tmp_path: Path) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        await show_list(pilot, stage, 0)
        assert said(stage) == NONE_YET
        async with leads_back(pilot, stage):
            await pilot.press("escape")


async def test_f2_gives_a_title_and_escape_leaves_it(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        async with brings(lambda: stage.app.screen.query_one("#title", Input).value == "Why W?", pilot):
            await pilot.press("down", "f2", "x", "escape", "f2")
        async with brings(lambda: "Width" in rows(stage)[1], pilot):
            await pilot.press("ctrl+u", *"Width", "enter")
        assert stage.app.screen.query_one("#search", Input).has_focus
        assert stage.app.screen.query_one(OptionList).highlighted == 1
    assert [one.title for one in kept(tmp_path)] == ["What is the pool?", "Width", "Hello?"]


async def test_f8_deletes_and_ctrl_z_brings_back(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        async with lists(pilot, stage, 0):
            await pilot.press("f8", *"w", "f8")
        assert "Ctrl+Z brings it back: Why W?" in said(stage)
        async with lists(pilot, stage, 1):
            await pilot.press("ctrl+z")
        assert stage.app.screen.query_one(OptionList).highlighted == 0
        async with leads_back(pilot, stage):
            await pilot.press("escape")
    assert [one.title for one in kept(tmp_path)] == ["Why W?", "Hello?"]


async def test_what_was_deleted_can_be_brought_back_after_the_list_was_left(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        async with lists(pilot, stage, 1):
            await pilot.press("f8", "f8")
        async with leads_back(pilot, stage):
            await pilot.press("escape")
        async with brings(lambda: "Ctrl+Z brings it back: Why W?" in said(stage), pilot):
            await pilot.press("ctrl+o")
        assert "Undo" in footer_names(stage.app)
        async with lists(pilot, stage, 3):
            await pilot.press("ctrl+z", "ctrl+z")
        assert "Undo" not in footer_names(stage.app)
    assert len(kept(tmp_path)) == 3


# --- keys that come in one burst --------------------------------------------------------------------------------------


async def test_a_burst_of_text_and_enter_opens_what_the_text_finds(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        async with leads_back(pilot, stage):
            burst(pilot, *"widtx", "backspace", *"h", "enter")
        assert "Why W?" in stage.text and "The width." in stage.text


async def test_a_burst_of_text_and_f8_deletes_what_the_text_finds_and_not_what_more_text_would(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        async with lists(pilot, stage, 1):
            burst(pilot, *"width", "f8", "ctrl+u", *"hello")
        assert "Hello?" in rows(stage)[0]
    assert [one.title for one in kept(tmp_path)] == ["What is the pool?", "Hello?"]


async def test_keys_wait_for_a_list_that_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three(tmp_path)
    stage, read = new_stage(tmp_path), threading.Event()
    store = stage.screen.saved.store
    assert store is not None
    listed = store.conversations

    def slowly() -> list[SavedConversation]:
        read.wait(patience())
        return listed()

    monkeypatch.setattr(store, "conversations", slowly)
    async with stage.app.run_test() as pilot:
        await until(lambda: stage.activity == "ready", pilot)
        async with brings(lambda: stage.app.focused is not None and stage.app.focused.id == "search"):
            burst(pilot, "ctrl+o")  # the pilot would wait until the list is read
        burst(pilot, *"width", "enter")
        async with leads_back(pilot, stage):
            read.set()
        assert "Why W?" in stage.text


async def test_a_burst_gives_the_title_that_was_typed(tmp_path: Path) -> None:
    async with (
        three_listed(tmp_path) as (pilot, stage),
        brings(lambda: any("Width of it" in row for row in rows(stage)), pilot),
    ):
        burst(pilot, *"width", "f2", "ctrl+u", *"Width of it", "enter")
    assert [one.title for one in kept(tmp_path)] == ["What is the pool?", "Width of it", "Hello?"]


async def test_the_conversation_that_is_open_is_not_deleted(tmp_path: Path) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await show_list(pilot, stage, 1)
        assert "open" in rows(stage)[0]
        async with brings(lambda: "It is open" in said(stage) and len(rows(stage)) == 1, pilot):
            await pilot.press("f8")
        async with leads_back(pilot, stage):
            await pilot.press("enter")
        assert "first answer" in stage.text and " passes" in stage.text  # as it was, not opened anew


async def test_nothing_is_opened_while_an_answer_is_being_written(tmp_path: Path) -> None:
    three(tmp_path)
    stage = Stage(FakeEngine(hold_steps=True), store=ConversationStore(tmp_path / "talks"))
    async with stage.app.run_test() as pilot:
        async with brings(lambda: stage.asking, pilot):
            await ask(pilot, "One?")
        await show_list(pilot, stage, 3)
        async with leads_back(pilot, stage):
            await pilot.press("enter")
        async with brings(lambda: len(stage.notices) == 4, pilot):
            await pilot.press("ctrl+r", "ctrl+t", "ctrl+l")
        assert set(stage.notices) == {"Stop the answer first (Esc)."}
        assert "One?" in stage.text and "pool?" not in stage.text


async def test_what_is_open_in_another_program_goes_on_as_a_copy_and_that_is_said(tmp_path: Path) -> None:
    other = ConversationStore(tmp_path / "talks")
    other.add(exchange("Theirs?"))
    stage = new_stage(tmp_path, opened=kept(tmp_path)[0])
    async with stage.app.run_test() as pilot:
        await until(lambda: "‘Theirs?’ is open in another ladechat" in "".join(stage.notices), pilot)
        assert "Theirs?" in stage.text
        mark = stage.app.query_one("#copy")
        await answered(pilot, stage, "Mine?")
        stage.app.clear_notifications()
        assert mark.region.width, "the mark outlasts the message"
        async with brings(lambda: not mark.region.width, pilot):
            await pilot.press("ctrl+l")
        await show_list(pilot, stage, 2)
        assert [row.splitlines()[0] for row in rows(stage)] == ["Theirs? (copy)", "Theirs?"]
        async with leads_back(pilot, stage):
            await pilot.press("enter")
        assert not mark.region.width, "what is asked now is saved in the conversation that was opened"
    assert sorted(len(one.exchanges) for one in kept(tmp_path)) == [1, 2]


# --- what cannot be kept ----------------------------------------------------------------------------------------------


async def test_a_store_that_cannot_be_written_is_told_of_once_and_the_chat_goes_on(tmp_path: Path) -> None:
    (tmp_path / "talks").write_text("in the way")
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        told = [notice for notice in stage.notices if "cannot be kept" in notice]
        assert len(told) == 1 and "The chat goes on" in told[0] and str(tmp_path / "talks") in told[0]
        async with brings(
            lambda: stage.notice == f"The conversation could not be kept in {tmp_path / 'talks'}.", pilot
        ):
            await pilot.press("ctrl+l")


async def test_a_conversation_whose_folder_was_removed_is_called_kept_only_when_it_is(tmp_path: Path) -> None:
    stage = new_stage(tmp_path)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        shutil.rmtree(tmp_path / "talks")
        await answered(pilot, stage, "Two?", times=2)
        assert [[one.question for one in each.exchanges] for each in kept(tmp_path)] == [["One?", "Two?"]]
        shutil.rmtree(tmp_path / "talks")
        async with brings(lambda: "is not kept: its file has been removed" in stage.notice, pilot):
            await pilot.press("ctrl+l")
    assert kept(tmp_path) == []


async def test_without_a_store_nothing_is_kept_and_the_keys_say_so() -> None:
    stage = Stage(FakeEngine(answers=ANSWERS))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "One?")
        async with brings(lambda: len(stage.notices) == 2, pilot):
            await pilot.press("ctrl+o", "ctrl+l")
        assert all("--no-save" in notice for notice in stage.notices)


async def test_the_prompt_brings_back_questions_of_earlier_sessions(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "questions.jsonl")
    history.add("Yesterday?")
    stage = Stage(FakeEngine(answers=ANSWERS), history=history)
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "Today?")
        async with brings(lambda: stage.prompt == "Yesterday?", pilot):
            await pilot.press("up", "up")
    assert history.read()[0] == ["Yesterday?", "Today?"]


async def test_damaged_questions_of_earlier_sessions_are_set_aside_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("garbage")
    stage = Stage(FakeEngine(answers=ANSWERS), history=PromptHistory(path))
    async with stage.app.run_test() as pilot:
        await answered(pilot, stage, "Today?")
        assert [notice for notice in stage.notices if "questions.jsonl.damaged" in notice]
    assert PromptHistory(path).read() == (["Today?"], "")
