"""Keys that come in one burst from the chat: what follows a key, or a command, that opens a screen is for that."""

from pathlib import Path

import pytest
from textual import events
from textual.command import CommandPalette
from textual.screen import Screen
from textual.widgets import Input

from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.learn.screen import LearnScreen
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.screens.lists.models import ModelsScreen
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.screens.race import RaceScreen
from ladechat.session.conversations.store import ConversationStore
from tests.app.stage import Room, Stage, answered, burst, shows
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import act, brings, until


def with_conversations(tmp_path: Path) -> Stage:
    write(tmp_path, "a", exchange("What is the pool?", "A store of n-grams."), when="2020-01-03T12:00:00")
    write(tmp_path, "b", exchange("Why W?", "The width."), when="2020-01-02T12:00:00")
    return Stage(FakeEngine(), store=ConversationStore(tmp_path))


async def test_text_and_enter_after_ctrl_o_open_what_the_text_finds_and_ask_nothing(tmp_path: Path) -> None:
    async with with_conversations(tmp_path).ready() as (pilot, stage):
        async with brings(lambda: "The width." in stage.text and stage.app.screen is stage.screen, pilot):
            burst(pilot, "ctrl+o", *"widtx", "backspace", *"h", "enter")
        assert stage.prompt == "" and stage.asked == []


async def test_a_paste_after_ctrl_o_is_a_search_too(tmp_path: Path) -> None:
    async with with_conversations(tmp_path).ready() as (pilot, stage):
        async with brings(lambda: isinstance(found := stage.app.focused, Input) and found.value == "a width", pilot):
            burst(pilot, "ctrl+o", *"a ")
            stage.app.post_message(events.Paste("width"))
        assert stage.prompt == ""


async def test_what_follows_a_command_that_opens_a_list_is_for_the_list() -> None:
    async with Room(FakeEngine(), FakeEngine(hold_loading=True)).ready() as (pilot, stage):
        async with brings(lambda: bool(stage.models), pilot):
            burst(pilot, *"/model", "enter", *"owner/x", "enter")
        assert stage.models == ["owner/x"] and stage.asked == [] and stage.prompt == ""


async def test_a_value_typed_after_settings_is_for_the_first_of_them(tmp_path: Path) -> None:
    async with Room(FakeEngine(), path=tmp_path / "settings.toml").ready() as (pilot, stage):
        first = stage.screen.settings.listed()[0]
        async with brings(lambda: stage.engine.settings.decoder == "jacobi", pilot):
            burst(pilot, *"/settings", "enter", *"jacobi", "enter")
        assert first.name == "decoder" and stage.asked == []


async def test_a_system_prompt_is_typed_on_where_it_ends() -> None:
    async with Room(FakeEngine()).ready() as (pilot, stage):
        for before, typed in (("", "Be brief."), ("Be brief.", " Rhyme.")):
            async with brings(lambda text=before + typed: stage.session.conversation.system == text, pilot):  # type: ignore[misc]  # a default value
                burst(pilot, *"/system", "enter", *typed, "ctrl+s")
        assert stage.asked == [] and stage.prompt == ""


@pytest.mark.parametrize(
    ("keys", "screen"),
    [
        (["f1"], HelpScreen),
        (["question_mark"], ExplainScreen),
        (["f9"], RaceScreen),
        (["ctrl+o"], ConversationsScreen),
        (["ctrl+p"], CommandPalette),
        ([*"/race Why?", "enter"], RaceScreen),
        ([*"/learn", "enter"], LearnScreen),
        ([*"/model", "enter"], ModelsScreen),
        ([*"/settings", "enter"], SettingsScreen),
    ],
)
async def test_no_text_for_a_screen_that_was_just_opened_is_asked(
    keys: list[str], screen: type[Screen[object]], tmp_path: Path
) -> None:
    stage = Room(
        FakeEngine(answers=("first", "second")), FakeEngine(hold_loading=True), store=ConversationStore(tmp_path)
    )
    async with stage.ready() as (pilot, _):
        await answered(pilot, stage, "One?")
        await act(pilot, lambda: burst(pilot, *keys, *"hello", "enter"), brings=shows(pilot, screen))
        await pilot.pause()
        assert "hello" not in stage.asked and stage.screen._prompt.text == ""


async def test_a_key_after_a_question_acts_when_that_was_asked() -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready() as (pilot, stage):
        async with brings(lambda: "Stop the answer first (Esc)." in stage.notices, pilot):
            burst(pilot, *"One?", "enter", "ctrl+l")
        await until(lambda: stage.asked == ["One?"], pilot)
        assert "One?" in stage.text
