"""The list of conversations: searched, opened, renamed, deleted, also by keys that come in one burst."""

import threading
from pathlib import Path

import pytest
from textual.widgets import Input, Label, OptionList

from ladechat.screens.lists.conversations import NONE_FOUND, NONE_YET, ConversationsScreen
from ladechat.session.conversations.index import GoOn
from ladechat.session.conversations.search import Listing
from ladechat.widgets.formatting import REOPENED
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.listed import kept, listed, lists, new_stage, rows, said, show_list, shown, three, three_listed
from tests.app.stage import answered, ask, burst, footer_names
from tests.session.conversations import exchange, forbid, write
from tests.waiting import act, brings, patience, press, until


async def test_what_would_steer_the_terminal_is_made_visible_in_the_list(tmp_path: Path) -> None:
    write(tmp_path / "talks", "a", exchange("\x1b[2J[bold]One", "Yes \x1b[31m."), title="[red]\x1b]0;t\x07")
    async with listed(new_stage(tmp_path), 1) as (pilot, stage):
        await press(pilot, *"yes", brings=lambda: "Yes" in rows(stage)[0])
        assert "\x1b" not in rows(stage)[0] and "[red]" in rows(stage)[0]
        await press(pilot, "f8", brings=lambda: "[red]" in said(stage) and "\x1b" not in said(stage))


async def test_typing_searches_titles_and_texts(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        assert "2 questions" in rows(stage)[2] and "Llama" in rows(stage)[1] and "01 Jan 2020" in rows(stage)[2]
        await press(pilot, *"N-GRAMS", brings=lists(stage, 1))
        assert "What is the pool?" in rows(stage)[0] and "A store of n-grams." in rows(stage)[0]
        await press(pilot, "x", brings=lists(stage, 0))
        assert said(stage) == NONE_FOUND
        await press(pilot, "enter", "f2", "f8", "escape", brings=stage.in_front)
    assert len(kept(tmp_path)) == 3


async def test_a_conversation_that_was_found_by_a_word_opens_there_and_says_what_is_not_kept(tmp_path: Path) -> None:
    long = exchange("Tell me.", "line\n" * 100)
    write(tmp_path / "talks", "a", exchange("Where?", "It is Saved in a lighthouse."), long)
    async with new_stage(tmp_path, "An answer.").ready() as (pilot, stage):
        transcript = stage.app.query_one(Transcript)
        await show_list(pilot, stage, 1)
        async with brings(lambda: "lighthouse" in rows(stage)[0], pilot):
            await pilot.press(*"saved")  # the notice about what is not saved has that word too
        await press(pilot, "enter", brings=stage.in_front)
        await until(lambda: stage.screen.get_selected_text() == "Saved", pilot)
        assert transcript.scroll_offset.y < 5 < transcript.max_scroll_y
        assert stage.text.count(REOPENED) == 1
        await ask(pilot, "/edit", brings=lambda: stage.prompt == "Tell me.")


async def test_a_phrase_opens_the_conversation_where_its_excerpt_is(tmp_path: Path) -> None:
    said = [exchange(f"Question {turn}?", f"Answer {turn}, in the\nwindow.") for turn in range(300)]
    said[100] = exchange("A keeper?", "Of the light\nhouse, and of the lamp.")
    said[200] = exchange("Lamp?", "The light of the lamp.")
    write(tmp_path / "talks", "a", *said)
    async with listed(new_stage(tmp_path), 1) as (pilot, stage):
        async with brings(lambda: "… Of the light house, and of the lamp. …" in rows(stage)[0], pilot):
            await pilot.press(*"of", "space", *"the", "space", *"lamp")
        await press(pilot, "enter", brings=stage.in_front)
        await until(lambda: stage.screen.get_selected_text() == "of the lamp", pilot)
        transcript = stage.app.query_one(Transcript)
        assert "house, and of the lamp." in "".join(line.text for line in shown(transcript))


async def test_rows_of_a_long_list_are_made_when_one_comes_near_them(tmp_path: Path) -> None:
    for number in range(100):
        write(
            tmp_path / "talks", f"{number:03}", exchange(f"Question {number}?"), when=f"2020-01-01T12:{number % 60:02}"
        )
    async with new_stage(tmp_path).ready() as (pilot, stage):
        async with brings(lambda: "Conversations · 100" in str(stage.app.screen.query_one("#head", Label).content)):
            await pilot.press("ctrl+o")
            await until(lambda: isinstance(stage.app.screen, ConversationsScreen), pilot)
        assert len(rows(stage)) < 50
        listed = stage.app.screen.query_one(OptionList)
        await press(pilot, *["pagedown"] * 25, brings=lambda: listed.highlighted == 99)
        assert len(set(rows(stage))) == 100


async def test_a_list_whose_folder_or_file_cannot_be_read_says_so_and_lists_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three(tmp_path)
    forbid(tmp_path / "talks" / "b.jsonl", monkeypatch)
    async with listed(new_stage(tmp_path), 2) as (pilot, stage):
        assert "b.jsonl cannot be read: Permission denied" in said(stage)
        await press(pilot, "escape", brings=stage.in_front)
        forbid(tmp_path / "talks", monkeypatch)
        await show_list(pilot, stage, 0)
        assert said(stage).startswith(f"{tmp_path / 'talks'} cannot be read: Permission denied")


async def test_f2_gives_a_title_and_escape_leaves_it(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        async with brings(lambda: stage.app.screen.query_one("#title", Input).value == "Why W?", pilot):
            await pilot.press("down", "f2", "x", "escape", "f2")
        await press(pilot, "ctrl+u", *"Width", "enter", brings=lambda: "Width" in rows(stage)[1])
        assert stage.app.screen.query_one("#search", Input).has_focus
        assert stage.app.screen.query_one(OptionList).highlighted == 1
    assert [one.title for one in kept(tmp_path)] == ["What is the pool?", "Width", "Hello?"]


async def test_f8_deletes_and_ctrl_z_brings_back(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        await press(pilot, "f8", *"w", "f8", brings=lists(stage, 0))
        assert "Ctrl+Z brings it back: Why W?" in said(stage)
        await press(pilot, "ctrl+z", brings=lists(stage, 1))
        assert stage.app.screen.query_one(OptionList).highlighted == 0
        await press(pilot, "escape", brings=stage.in_front)
    assert [one.title for one in kept(tmp_path)] == ["Why W?", "Hello?"]


async def test_what_was_deleted_can_be_brought_back_after_the_list_was_left(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        await press(pilot, "f8", "f8", brings=lists(stage, 1))
        await press(pilot, "escape", brings=stage.in_front)
        await press(pilot, "ctrl+o", brings=lambda: "Ctrl+Z brings it back: Why W?" in said(stage))
        assert "Undo" in footer_names(stage.app)
        await press(pilot, "ctrl+z", "ctrl+z", brings=lists(stage, 3))
        assert "Undo" not in footer_names(stage.app)
    assert len(kept(tmp_path)) == 3


async def test_a_burst_of_text_and_f8_deletes_what_the_text_finds_and_not_what_more_text_would(tmp_path: Path) -> None:
    async with three_listed(tmp_path) as (pilot, stage):
        await act(pilot, lambda: burst(pilot, *"width", "f8", "ctrl+u", *"hello"), brings=lists(stage, 1))
        assert "Hello?" in rows(stage)[0]
    assert [one.title for one in kept(tmp_path)] == ["What is the pool?", "Hello?"]


async def test_keys_wait_for_a_list_that_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    three(tmp_path)
    stage, read = new_stage(tmp_path), threading.Event()
    store = stage.screen.saved.store
    assert store is not None
    listed = store.listing

    def slowly(go_on: GoOn) -> Listing:
        read.wait(patience())
        return listed(go_on)

    monkeypatch.setattr(store, "listing", slowly)
    async with stage.ready() as (pilot, _):
        async with brings(lambda: stage.app.focused is not None and stage.app.focused.id == "search"):
            burst(pilot, "ctrl+o")  # the pilot would wait until the list is read
        burst(pilot, *"width", "enter")
        await act(pilot, read.set, brings=stage.in_front)
        assert "Why W?" in stage.text


async def test_a_burst_gives_the_title_that_was_typed(tmp_path: Path) -> None:
    async with (
        three_listed(tmp_path) as (pilot, stage),
        brings(lambda: any("Width of it" in row for row in rows(stage)), pilot),
    ):
        burst(pilot, *"width", "f2", "ctrl+u", *"Width of it", "enter")
    assert [one.title for one in kept(tmp_path)] == ["What is the pool?", "Width of it", "Hello?"]


async def test_an_empty_list_says_so_and_the_conversation_that_is_open_is_not_deleted(tmp_path: Path) -> None:
    async with listed(new_stage(tmp_path), 0) as (pilot, stage):
        assert said(stage) == NONE_YET
        await press(pilot, "escape", brings=stage.in_front)
        await answered(pilot, stage, "One?")
        await show_list(pilot, stage, 1)
        assert "open" in rows(stage)[0]
        await press(pilot, "f8", brings=lambda: "It is open" in said(stage) and len(rows(stage)) == 1)
        await press(pilot, "enter", brings=stage.in_front)
        assert "first answer" in stage.text and " passes" in stage.text  # as it was, not opened anew
