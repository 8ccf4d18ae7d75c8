"""In the smallest terminal everything can be read: whole words, whole sentences, as far as one scrolls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import OptionList, TextArea

from ladechat.keys import APP_KEYS
from ladechat.screens.help.explain import ExplainScreen
from ladechat.screens.help.help import ALWAYS, PASSES, HelpScreen
from ladechat.screens.lists.conversations import ConversationsScreen
from ladechat.screens.lists.settings import SettingsScreen
from ladechat.screens.system_prompt import SystemPromptScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.inputs import Field
from tests.app.stage import Driver, Room, Stage, ask, shows
from tests.waiting import press, until

SIZES = [(40, 10), (80, 24), *(pytest.param(size, marks=pytest.mark.full) for size in ((57, 12), (61, 12), (200, 60)))]
WRONG = """
theme = "nrod"
look = "rainbow"
decoder = "lookahed"
temperature = 9
colour = "red"
top_p = 7
max_new_tokens = 0

[parameters]
window = "x"
guesse = 3
"""


def screen_of(pilot: Driver) -> list[str]:
    return [strip.text for strip in pilot.app.screen._compositor.render_strips()]


async def scrolled_through(pilot: Driver) -> str:
    """All that is shown from the top to the bottom, in one line."""
    scroll = pilot.app.screen.query_one(VerticalScroll)
    room, rows = scroll.scrollable_content_region, {}
    while True:
        await until(lambda: scroll.scroll_offset.y == scroll.scroll_target_y, pilot)
        for row, text in enumerate(screen_of(pilot)[room.y : room.bottom]):
            rows[scroll.scroll_offset.y + row] = text[room.x : room.right].strip()
        if scroll.scroll_offset.y >= scroll.max_scroll_y:
            return " ".join(" ".join(rows[y] for y in sorted(rows)).split())
        await pilot.press("pagedown")


def told_in_help(stage: Stage) -> list[str]:
    explained = [*PASSES, *ALWAYS, *((info.label, info.help) for info in stage.screen.decoders)]
    return [*(key.tooltip for key in APP_KEYS), *(told for _, told in explained)]


def told_of_the_panels(stage: Stage) -> list[str]:
    return [told for _, told in stage.screen.view.side.explanations()]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("key", "screen", "expected"),
    [("f1", HelpScreen, told_in_help), ("question_mark", ExplainScreen, told_of_the_panels)],
    ids=["help", "explanations"],
)
async def test_what_is_explained_can_be_read_to_its_last_word(
    key: str, screen: type[Screen[Any]], expected: Callable[[Stage], list[str]], size: tuple[int, int]
) -> None:
    async with Room().ready(size=size) as (pilot, stage):
        words = expected(stage)
        await press(pilot, key, brings=shows(pilot, screen))
        text = await scrolled_through(pilot)
        assert text and [one for one in words if one not in text] == []


@pytest.mark.parametrize("size", SIZES)
async def test_several_faults_of_the_settings_are_counted_and_listed_with_their_lines(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(WRONG)
    async with Room(path=path).ready(size=size) as (pilot, _):
        notice = " ".join(" ".join(screen_of(pilot)).replace("▌", "").split())
        assert "9 settings are left out: F1 lists them." in notice
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        text = await scrolled_through(pilot)
        for line, about in enumerate(("theme", "look", "decoder", "temperature", "'colour'", "top_p"), start=2):
            _, _, said = text.partition(f"line {line} ")
            assert about in said.partition("It is left out.")[0]
        assert "line 2 there is no theme 'nrod'; there are " in text and " nord, " in text
        assert path.read_text() == WRONG


async def test_a_message_that_has_no_room_is_whole_in_the_help() -> None:
    async with Room().ready(size=(40, 10)) as (pilot, stage):
        said = "There is no theme of that name; there are:"
        await ask(pilot, "/theme nrod", brings=lambda: any("… F1 shows all of it" in row for row in screen_of(pilot)))
        assert any(said[:20] in row for row in screen_of(pilot))
        await press(pilot, "f1", brings=shows(pilot, HelpScreen))
        assert f"{said} {', '.join(sorted(stage.app.available_themes))}." in await scrolled_through(pilot)


async def test_the_list_of_settings_has_room_below_what_the_marked_one_is() -> None:
    async with Room().ready(size=(40, 10)) as (pilot, stage):
        await ask(pilot, "/settings", brings=shows(pilot, SettingsScreen))
        listed = stage.app.screen.query_one(OptionList)
        for place in range(listed.option_count):
            await until(lambda place=place: listed.highlighted == place, pilot)  # type: ignore[misc]
            name = str(listed.get_option_at_index(place).prompt).split()[0]
            await until(lambda name=name: any(row.strip().startswith(name) for row in screen_of(pilot)), pilot)  # type: ignore[misc]
            await pilot.press("down")


async def test_the_fields_of_lists_and_the_heading_of_the_system_prompt_are_whole(tmp_path: Path) -> None:
    async with Room(store=ConversationStore(tmp_path)).ready(size=(40, 10)) as (pilot, stage):
        for command, screen in (("/settings", SettingsScreen), ("/conversations", ConversationsScreen)):
            await ask(pilot, command, brings=shows(pilot, screen))
            await until(lambda: _placeholder_shown(pilot), pilot)
            await press(pilot, "escape", brings=stage.in_front)
        await ask(pilot, "/system", brings=shows(pilot, SystemPromptScreen))
        await until(lambda: "from the next question on" in " ".join(" ".join(screen_of(pilot)).split()), pilot)
        area = pilot.app.screen.query_one(TextArea).region
        assert pilot.app.screen.query_one(KeyFooter).region.y >= area.bottom > area.y


def _placeholder_shown(pilot: Driver) -> bool:
    """Is what the field of a list says while it is empty to be read?"""
    said = pilot.app.screen.query_one(Field).placeholder
    return bool(said) and str(said) in " ".join(screen_of(pilot))
