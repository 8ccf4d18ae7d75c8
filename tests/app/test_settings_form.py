"""The form of settings, and what is kept of what was set."""

from pathlib import Path

import pytest
from textual.widgets import Label, OptionList

from ladechat.palette import Look
from ladechat.preferences import SETTINGS, SettingsFile
from ladechat.screens.lists.settings import SettingsScreen
from tests.app.stage import Driver, Room, Stage, answered, ask, burst, shows
from tests.fake_engine import FakeEngine
from tests.waiting import brings, press, until


async def test_a_burst_sets_in_the_form_what_was_typed_for_each_setting(tmp_path: Path) -> None:
    async with Room(path=tmp_path / "settings.toml").ready() as (pilot, stage):
        await ask(pilot, "/settings", brings=shows(pilot, SettingsScreen))
        async with brings(lambda: stage.engine.settings.parameters == {"window": 8, "ngram": 4}, pilot):
            burst(pilot, "down", "8", "enter", "down", "4", "enter")


async def test_the_form_sets_what_is_marked_and_refuses_in_place(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with Room(path=path).ready() as (pilot, stage):
        await ask(pilot, "/settings", brings=shows(pilot, SettingsScreen))
        await pilot.press("down", *"99", "enter")
        async with brings(lambda: stage.engine.settings.parameters == {"window": 8}, pilot):
            await pilot.press("backspace", "backspace", "8", "enter")
        assert len(stage.engine.commands) == 1
        async with brings(lambda: stage.engine.settings.parameters.get("pool_prompt") is False, pilot):
            await pilot.press("down", "down", "down", "enter")
        await press(pilot, "ctrl+s", "escape", brings=lambda: path.exists() and stage.app.screen is stage.screen)
    kept = SettingsFile(path).preferences
    assert (kept.decoder, kept.parameters) == (None, {"window": 8, "pool_prompt": False})  # demo begins with lookahead


def row_of(stage: Stage, name: str) -> str:
    """Mark the row of a setting in the form; return its text."""
    options = stage.app.screen.query_one(OptionList)
    rows = [str(option.prompt) for option in options.options]
    options.highlighted = next(place for place, row in enumerate(rows) if row.split()[0] == name)
    return rows[options.highlighted]


async def set_in_form(pilot: Driver, stage: Stage, name: str, value: str) -> None:
    """Type a value for a setting, and wait until its row has it."""
    row_of(stage, name)
    await pilot.pause()
    async with brings(lambda: value in row_of(stage, name), pilot):
        await pilot.press(*("full_stop" if letter == "." else letter for letter in value), "enter")


async def all_is_read_of(pilot: Driver, stage: Stage, name: str, last: str) -> None:
    """Mark a setting; what it may be, up to its last choice, has to be on the screen."""
    said = stage.app.screen.query_one(".said", Label)
    row_of(stage, name)
    await until(lambda: last in str(said.content), pilot)
    await pilot.pause()
    screen = " ".join(strip.text for strip in stage.app.screen._compositor.render_strips())
    assert all(word in screen.split() for word in str(said.content).split()), "a choice is cut"


async def test_the_form_lists_and_sets_whatever_the_users_file_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with Room(FakeEngine(), FakeEngine(), path=path).ready(size=(80, 24)) as (pilot, stage):
        await ask(pilot, "/settings", brings=shows(pilot, SettingsScreen))
        names = {str(option.prompt).split()[0] for option in stage.app.screen.query_one(OptionList).options}
        elsewhere = ("parameters", "keys", "engine")  # each parameter has a row; the others act from the next start on
        assert {name.replace("_", "-") for name in SETTINGS if name not in elsewhere} <= names
        said = stage.app.screen.query_one(".said", Label)
        for name, value in {"max-new-tokens": "7", "theme": "nord", "look": "demo", "system": "Rhyme."}.items():
            await set_in_form(pilot, stage, name, value)
        row_of(stage, "look")
        async with brings(lambda: "look has to be hues or demo, not 'x'" in str(said.content), pilot):
            await pilot.pause()
            await pilot.press("x", "enter")
        async with brings(lambda: not stage.screen.view.side.display, pilot):
            row_of(stage, "panels")
            await pilot.pause()
            await pilot.press("enter")
        await all_is_read_of(pilot, stage, "decoder", "layer_skip")
        await all_is_read_of(pilot, stage, "theme", "tokyo-night")
        async with brings(lambda: stage.models == ["owner/x"], pilot):
            row_of(stage, "model")
            await pilot.pause()
            await pilot.press(*"owner", "slash", "x", "enter")
        await pilot.press("ctrl+s", "escape")
        await until(lambda: stage.activity == "ready", pilot)
        await answered(pilot, stage, "One?")
        assert stage.engine.questions[0].max_new_tokens == 7
    kept = SettingsFile(path).preferences
    assert (kept.theme, kept.look, kept.panels) == ("nord", "demo", False)
    assert (kept.max_new_tokens, kept.system) == (7, "Rhyme.")


@pytest.mark.full
async def test_theme_look_and_panels_are_as_they_were_left(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with Room(path=path).running() as (pilot, _):
        async with brings(lambda: SettingsFile(path).preferences.look == "demo", pilot):
            await ask(pilot, "/theme nord")
            await pilot.press("f2", "f4")
        await until(lambda: SettingsFile(path).preferences.theme == "nord", pilot)
    async with Room(path=path).running() as (_, again):
        assert (again.app.theme, again.app.palette.look, again.screen.view.side.display) == ("nord", Look.DEMO, False)
