"""Conversations that people keep: begun anew, opened, gone on with, and what cannot be kept."""

import errno
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from ladechat.protocol import Message
from ladechat.saved_drafts import drafts_file, drafts_folder
from ladechat.screens.reading import ReadingScreen
from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets import flow
from ladechat.widgets.flow import Line, Run, wrap
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.listed import ANSWERS, kept, new_stage, rows, show_list, shown, three
from tests.app.stage import Stage, answered, ask, shows
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import act, brings, press, until

WHO_GOES_ON = "Llama answered here last; demo model goes on with it. /model org/Llama takes that one."


async def test_what_is_answered_is_kept_and_a_new_conversation_says_so(tmp_path: Path) -> None:
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await press(pilot, "ctrl+l", brings=lambda: "saved: Ctrl+O finds it" in stage.notice)
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
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "Before?")
        await show_list(pilot, stage, 4)
        await press(pilot, "down", "down", "down", "enter", brings=stage.in_front)
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
    async with new_stage(tmp_path, opened=kept(tmp_path)[1]).running() as (pilot, stage):
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
        await press(pilot, "f5", brings=lambda: "reading the weights" in stage.activity)
        await act(pilot, loading.finish_loading, brings=lambda: stage.notices == [WHO_GOES_ON])


async def test_nothing_is_opened_while_an_answer_is_being_written(tmp_path: Path) -> None:
    three(tmp_path)
    stage = Stage(FakeEngine(hold_steps=True), store=ConversationStore(tmp_path / "talks"))
    async with stage.app.run_test() as pilot:
        await ask(pilot, "One?", brings=lambda: stage.asking)
        await show_list(pilot, stage, 3)
        await press(pilot, "enter", brings=shows(pilot, ReadingScreen))
        await press(pilot, "escape", brings=stage.in_front)
        await press(pilot, "ctrl+r", "ctrl+t", "ctrl+l", brings=lambda: len(stage.notices) == 3)
        assert set(stage.notices) == {"Stop the answer first (Esc)."}
        assert "One?" in stage.text and "pool?" not in stage.text


async def test_what_is_open_in_another_program_goes_on_as_a_copy_and_that_is_said(tmp_path: Path) -> None:
    other = ConversationStore(tmp_path / "talks")
    other.add(exchange("Theirs?"))
    async with new_stage(tmp_path, opened=kept(tmp_path)[0]).running() as (pilot, stage):
        await until(lambda: "‘Theirs?’ is open in another ladechat" in "".join(stage.notices), pilot)
        assert "Theirs?" in stage.text
        mark = stage.app.query_one("#copy")
        await answered(pilot, stage, "Mine?")
        stage.app.clear_notifications()
        assert mark.region.width, "the mark outlasts the message"
        await press(pilot, "ctrl+l", brings=lambda: not mark.region.width)
        await show_list(pilot, stage, 2)
        assert [row.splitlines()[0] for row in rows(stage)] == ["Theirs? (copy)", "Theirs?"]
        await press(pilot, "enter", brings=stage.in_front)
        assert not mark.region.width, "what is asked now is saved in the conversation that was opened"
    assert sorted(len(one.exchanges) for one in kept(tmp_path)) == [1, 2]


async def test_a_store_that_cannot_be_written_is_told_of_once_and_the_chat_goes_on(tmp_path: Path) -> None:
    (tmp_path / "talks").write_text("in the way")
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await answered(pilot, stage, "Two?", times=2)
        told = [notice for notice in stage.notices if "cannot be saved" in notice]
        assert len(told) == 1 and "The chat goes on" in told[0] and str(tmp_path / "talks") in told[0]
        async with brings(
            lambda: stage.notice == f"The conversation could not be saved in {tmp_path / 'talks'}.", pilot
        ):
            await pilot.press("ctrl+l")


async def test_a_conversation_whose_folder_was_removed_is_called_kept_only_when_it_is(tmp_path: Path) -> None:
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        shutil.rmtree(tmp_path / "talks")
        await answered(pilot, stage, "Two?", times=2)
        assert [[one.question for one in each.exchanges] for each in kept(tmp_path)] == [["One?", "Two?"]]
        shutil.rmtree(tmp_path / "talks")
        await press(pilot, "ctrl+l", brings=lambda: "is not saved: its file has been removed" in stage.notice)
    assert kept(tmp_path) == []


async def test_another_conversation_is_not_opened_without_a_word_about_what_is_not_saved(tmp_path: Path) -> None:
    three(tmp_path)
    async with new_stage(tmp_path).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        assert stage.screen.saved.store is not None and stage.screen.saved.store.path is not None
        stage.screen.saved.store.path.unlink()
        await show_list(pilot, stage, 3)
        await press(pilot, "enter", brings=lambda: "A store of n-grams." in stage.text)
        assert [notice for notice in stage.notices if "is not saved: its file has been removed" in notice]


async def test_without_a_store_nothing_is_kept_and_the_keys_say_so() -> None:
    async with Stage(FakeEngine(answers=ANSWERS)).running() as (pilot, stage):
        await answered(pilot, stage, "One?")
        await press(pilot, "ctrl+o", "ctrl+l", brings=lambda: len(stage.notices) == 2)
        assert all("--no-save" in notice for notice in stage.notices)


async def test_what_drafting_has_learnt_is_deleted_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    files = [drafts_file("one"), drafts_file("another")]
    drafts_folder().mkdir(parents=True)
    for file in files:
        file.write_bytes(b"")
    async with Stage(FakeEngine(answers=ANSWERS)).running() as (pilot, stage):
        await ask(pilot, "/forget", brings=lambda: "is deleted" in stage.notice)
        assert not any(file.exists() for file in files)
        monkeypatch.setattr(Path, "unlink", _may_not)
        files[1].write_bytes(b"")
        await ask(pilot, "/forget", brings=lambda: "Permission denied" in stage.notice)


def _may_not(path: Path, missing_ok: bool = False) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


async def test_the_prompt_brings_back_questions_of_earlier_sessions(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "questions.jsonl")
    history.add("Yesterday?")
    async with Stage(FakeEngine(answers=ANSWERS), history=history).running() as (pilot, stage):
        await answered(pilot, stage, "Today?")
        await press(pilot, "up", "up", brings=lambda: stage.prompt == "Yesterday?")
    assert history.read()[0] == ["Yesterday?", "Today?"]


async def test_what_stands_in_the_prompt_at_the_end_comes_back_by_up_in_the_next_session(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "questions.jsonl")
    async with Stage(history=history).ready() as (pilot, stage):
        await press(pilot, *"Half a", brings=lambda: stage.prompt == "Half a")
    async with Stage(history=history).ready() as (pilot, stage):
        await press(pilot, "up", brings=lambda: stage.prompt == "Half a")


async def test_damaged_questions_of_earlier_sessions_are_set_aside_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text("garbage")
    async with Stage(FakeEngine(answers=ANSWERS), history=PromptHistory(path)).running() as (pilot, stage):
        await answered(pilot, stage, "Today?")
        assert [notice for notice in stage.notices if "questions.jsonl.damaged" in notice]
    assert PromptHistory(path).read() == (["Today?"], "")
