"""The list of themes: each is shown while it is highlighted; Enter keeps it, Esc takes it back."""

from pathlib import Path

import pytest
from textual.command import CommandInput, CommandList, CommandPalette

from ladechat.preferences import SettingsFile
from tests.app.stage import Driver, Room, Stage, ask, entries, shows
from tests.waiting import act, brings, press, until


async def opened(pilot: Driver, stage: Stage, by: str = "/theme") -> CommandList:
    """The list, in which the present theme is the first row."""
    if by == "/theme":
        await ask(pilot, "/theme", brings=shows(pilot, CommandPalette))
    else:
        await act(pilot, entries(stage.app)["Theme"].callback, brings=shows(pilot, CommandPalette))
    listed = stage.app.screen.query_one(CommandList)
    await until(lambda: listed.option_count == len(stage.app.available_themes), pilot)
    assert listed.highlighted == 0 and stage.app.theme == "textual-dark"
    return listed


async def test_the_highlighted_theme_is_shown_and_esc_takes_it_back(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with Room(path=path).ready() as (pilot, stage):
        await opened(pilot, stage)
        background = stage.screen.styles.background
        await press(pilot, "down", "down", brings=lambda: stage.app.theme not in ("textual-dark", "ansi-dark"))
        shown = stage.app.theme
        async with brings(lambda: stage.app.theme == "solarized-light", pilot):
            stage.app.screen.query_one(CommandInput).value = "solarized-light"
        await until(lambda: stage.screen.styles.background != background and not stage.app.palette.dark, pilot)
        assert shown != stage.app.theme
        await press(pilot, "escape", brings=lambda: stage.app.theme == "textual-dark" and stage.in_front())
        await until(lambda: stage.screen.styles.background == background and stage.app.palette.dark, pilot)
    assert SettingsFile(path).preferences.theme is None


@pytest.mark.parametrize("by", ["/theme", "the palette"])
async def test_enter_keeps_the_highlighted_theme(by: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    async with Room(path=path).ready() as (pilot, stage):
        await opened(pilot, stage, by)
        async with brings(lambda: stage.app.theme == "nord", pilot):
            stage.app.screen.query_one(CommandInput).value = "nord"
        await press(pilot, "enter", brings=stage.in_front)
        await until(lambda: SettingsFile(path).preferences.theme == "nord", pilot)
        assert stage.app.theme == "nord"
