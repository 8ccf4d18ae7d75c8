"""Files that the typed question names: completed, dropped, seen before they are sent, and refused."""

from pathlib import Path

import pytest
from textual import events

from ladechat.session.conversations.prompt_history import PromptHistory
from ladechat.widgets.prompt.above_prompt import TypedSize
from ladechat.widgets.prompt.completions import Completions
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Stage, ask
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press, until

SENT = "What does notes.txt say?\n\nnotes.txt:\n```txt\nNothing new.\n```"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with some files."""
    folder = tmp_path / "here"
    (folder / "src").mkdir(parents=True)
    monkeypatch.chdir(folder)
    (folder / "notes.txt").write_text("Nothing new.")
    (folder / "my notes.md").write_text("# Old")
    (folder / "src" / "a.py").write_text("a = 1\n")
    return folder


def said(stage: Stage) -> str:
    """What the line above the prompt says."""
    line = stage.app.query_one(TypedSize)
    return str(line.render()) if line.display else ""


async def test_a_path_is_completed_and_its_file_sent_and_edited_as_it_was_typed(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "questions.jsonl")
    async with Stage(history=history).ready() as (pilot, stage):
        shown = stage.app.query_one(Completions)
        await press(pilot, *"What does ", "@", brings=lambda: shown.display and shown.option_count == 3)
        await press(pilot, "n", brings=lambda: shown.option_count == 1)
        await press(pilot, "enter", brings=lambda: stage.prompt == "What does @notes.txt " and not shown.display)
        assert said(stage) == "with notes.txt (about 3 tokens)"
        await press(pilot, *"say?", "enter", brings=lambda: stage.asked == [SENT] and not stage.asking)
        assert stage.prompt == said(stage) == ""
        await press(pilot, "ctrl+t", brings=lambda: stage.prompt == "What does @notes.txt say?")
        await press(pilot, "escape", brings=lambda: stage.prompt == "")
        await press(pilot, "up", brings=lambda: stage.prompt == "What does @notes.txt say?")
    assert history.read()[0] == ["What does @notes.txt say?"]


async def test_a_folder_is_gone_into_and_spaces_get_quotation_marks() -> None:
    async with Stage().ready() as (pilot, stage):
        shown = stage.app.query_one(Completions)
        await press(pilot, "@", "s", "tab", brings=lambda: stage.prompt == "@src/" and shown.option_count == 1)
        await press(pilot, "tab", brings=lambda: stage.prompt == "@src/a.py " and not shown.display)
        await press(pilot, "@", "m", "y", "tab", brings=lambda: stage.prompt == '@src/a.py @"my notes.md" ')
        await until(lambda: said(stage) == "with src/a.py (about 1 token), my notes.md (about 1 token)", pilot)


async def test_a_path_typed_to_its_end_is_sent_and_a_list_in_the_way_closed(folder: Path) -> None:
    (folder / "notes.txt.old").touch()
    async with Stage().ready() as (pilot, stage):
        await press(pilot, *"@notes.txt", "enter", brings=lambda: len(stage.asked) == 1 and not stage.asking)
        await press(pilot, *"to @no", brings=lambda: stage.app.query_one(Completions).display)
        await press(pilot, "escape", "enter", brings=lambda: stage.asked[1:] == ["to @no"])


async def test_a_file_dropped_on_the_terminal_is_named_and_a_command_gets_its_path(folder: Path) -> None:
    async with Stage().ready() as (pilot, stage):
        path = folder / "my notes.md"
        async with brings(lambda: stage.prompt == f'@"{path}" ', pilot):
            stage.app.post_message(events.Paste(f"'{path}'"))
        await pilot.press("escape")
        await press(pilot, *"/replay ", brings=lambda: stage.prompt == "/replay ")
        async with brings(lambda: stage.prompt == f"/replay {path}", pilot):
            stage.app.post_message(events.Paste(str(path).replace(" ", "\\ ")))
        assert said(stage) == ""


async def test_paths_behind_commands_are_completed_by_tab_and_never_by_enter() -> None:
    async with Stage().ready() as (pilot, stage):
        shown = stage.app.query_one(Completions)
        await press(pilot, *"/replay no", brings=lambda: shown.display and shown.option_count == 1)
        await press(pilot, "tab", brings=lambda: stage.prompt == "/replay notes.txt")
        await press(pilot, "ctrl+a", *"/export note", brings=lambda: shown.display and stage.prompt == "/export note")
        await press(pilot, "enter", brings=lambda: "has to end" in stage.notice and stage.prompt == "/export note")
        await press(pilot, "ctrl+a", *"/model ./s", "tab", brings=lambda: stage.prompt == "/model ./src/")
        await press(pilot, "ctrl+a", *"/model s", brings=lambda: stage.prompt == "/model s" and not shown.display)
        await press(pilot, "ctrl+a", *"/race See @no", brings=lambda: shown.display and shown.option_count == 1)
        for no_path in ("/system ./s", "/system @no", "/rename Of @no", "/save ./s"):
            await press(pilot, "ctrl+a", *no_path, brings=lambda: stage.prompt == no_path and not shown.display)


async def test_what_is_too_long_for_the_model_is_said_before_it_is_sent_and_stays_to_be_shortened(folder: Path) -> None:
    (folder / "long.txt").write_text("word " * 2000)
    async with Stage().ready() as (pilot, stage):
        line = stage.app.query_one(TypedSize)
        await press(pilot, *"@long.txt", "space", brings=lambda: line.has_class("-warns"))
        assert said(stage) == "with long.txt (about 2,500 tokens): too long for the model's context of 1,024"
        stage.engine.fail_next = "message_too_long"
        async with brings(lambda: "It is too long. Shorten it." in stage.text and stage.prompt == "@long.txt", pilot):
            await pilot.press("enter")
        await press(pilot, "escape", *"@notes.txt", brings=lambda: not line.has_class("-warns") and said(stage))


async def test_a_file_that_is_not_there_is_said_before_it_is_missed(folder: Path) -> None:
    async with Stage().ready() as (pilot, stage):
        line = stage.app.query_one(TypedSize)
        await press(pilot, *"@note.txt @notes.txt", brings=lambda: "there is no file note.txt" in said(stage))
        assert line.has_class("-warns") and said(stage).startswith("with notes.txt (")
        held = "There is no file note.txt. Enter again sends the question as it is."
        await press(pilot, "enter", brings=lambda: stage.notice == held and stage.prompt == "@note.txt @notes.txt")
        assert stage.asked == []
        await press(pilot, "enter", brings=lambda: len(stage.asked) == 1 and not stage.asking)
        await press(pilot, *"@note.txt", "enter", brings=lambda: len(stage.notices) == 2 and stage.asked[1:] == [])
        await press(pilot, "ctrl+a", *"@property of me@example.com", brings=lambda: not line.display)


async def test_what_is_no_text_is_refused_and_the_question_stays(folder: Path) -> None:
    (folder / "picture.png").write_bytes(b"\x89PNG\xff")
    async with Stage().ready() as (pilot, stage):
        text = "What is in @picture.png?"
        await ask(pilot, text, brings=lambda: "picture.png cannot be sent" in stage.notice and stage.prompt == text)
        await press(pilot, "f9", brings=lambda: len(stage.notices) == 2)
        assert stage.asked == []


async def test_a_waiting_question_is_taken_back_as_it_was_typed() -> None:
    async with Stage(FakeEngine(hold_steps=True)).running() as (pilot, stage):
        await ask(pilot, "One?", brings=lambda: stage.asking)
        await ask(pilot, "See @notes.txt", brings=lambda: len(stage.session.waiting) == 1)
        assert "Nothing new." in stage.session.waiting[0]
        await press(pilot, "up", brings=lambda: stage.app.query_one(Prompt).text == "See @notes.txt")
