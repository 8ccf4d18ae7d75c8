"""Sizes of the terminal, colours, and what is copied from the screen."""

import math
import subprocess
import sys
from itertools import accumulate, combinations, groupby
from pathlib import Path

import pytest
from textual.widget import Widget

from ladechat.palette import Look
from ladechat.screens.help.help import HelpScreen
from ladechat.screens.terminal.app_on_terminal import keep
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.bars.message_line import MessageLine
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.sliders.sliders import Sliders
from ladechat.widgets.too_small import TooSmall
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.stage import SHOWN_ANSWER, Stage, answered, begun, shows
from tests.app.test_small_terminals import screen_of
from tests.fake_engine import ANSWER, FakeEngine
from tests.waiting import act, brings, press, until


@pytest.mark.parametrize("size", [(80, 24), (160, 48), (200, 60)])
async def test_everything_is_inside_the_screen_and_nothing_overlaps(size: tuple[int, int]) -> None:
    async with Stage(FakeEngine(hold_steps=True), decoder="lookahead").running(size=size) as (pilot, stage):
        await begun(pilot, stage, 12)
        names = ("transcript", "window", "pool", "speed", "slider-temperature", "slider-top_p", "prompt", "status")
        parts: list[Widget] = [stage.app.query_one(f"#{name}") for name in names]
        parts += [stage.slider(name) for name in ("window", "ngram", "guesses")]
        parts.append(stage.app.query_one(KeyFooter))
        for part in parts:
            assert part.region.area > 0, part
            assert stage.app.screen.region.contains_region(part.region), part
        for one, other in combinations(parts, 2):
            assert not one.region.overlaps(other.region), (one, other)
        assert stage.app.query_one(Transcript).size.width >= 40
        heights = {name: stage.app.query_one(f"#{name}").size.height for name in ("window", "pool", "speed")}
        assert min(heights.values()) >= 3, heights


def whole_keys(footer: KeyFooter) -> set[str]:
    """Return the texts that the footer may show, without spaces: its first key or group, its first two, and so on."""
    texts = [""]
    for group, members in groupby(footer.keys, lambda key: key.group):
        keys = list(members)
        if group and len(keys) > 1:
            texts.append("".join(key.shown for key in keys) + group)
        else:
            texts += [key.shown + key.description for key in keys]
    return {text.replace(" ", "") for text in accumulate(texts)}


@pytest.mark.parametrize("answering", [False, True])
async def test_no_key_in_the_footer_is_cut_at_any_width(answering: bool) -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready(size=(39, 24)) as (pilot, stage):
        if answering:
            await begun(pilot, stage, 3)
        footer = stage.app.query_one(KeyFooter)
        for narrowest, widest in ((40, 69), (70, 109), (110, 200)):  # between these the screen is arranged alike
            async with brings(lambda: stage.screen.size.width == narrowest, pilot):
                await pilot.resize_terminal(narrowest, 24)
            for width in range(narrowest, widest + 1):
                line = "".join(segment.text for segment in footer.segments(width))
                keys, _, palette = line.replace(" ", "").partition("▏")
                assert keys in whole_keys(footer) and palette in ("", "^ppalette"), (width, keys, palette)


async def test_where_there_is_no_room_for_both_the_conversation_has_it() -> None:
    async with Stage().running(size=(60, 16)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        assert stage.app.query_one(Transcript).size.width >= 50
        await press(pilot, "f2", brings=lambda: stage.app.query_one("#side").region.area > 0)


TINY = [
    (39, 40),
    (1, 1),
    (2, 24),
    *(pytest.param(size, marks=pytest.mark.full) for size in ((30, 8), (100, 9), (5, 3))),
]


@pytest.mark.parametrize("size", TINY)
async def test_a_terminal_that_is_too_small_says_so_and_loses_nothing(size: tuple[int, int]) -> None:
    async with Stage(FakeEngine(hold_steps=True)).running(size=(100, 30)) as (pilot, stage):
        small = stage.app.query_one(TooSmall)
        await begun(pilot, stage, 3)
        async with brings(lambda: small.display, pilot):
            await pilot.resize_terminal(*size)
        assert f"this terminal has {size[0]}×{size[1]}" in str(small.render())
        await act(pilot, stage.engine.release, brings=lambda: not stage.asking)
        async with brings(lambda: not small.display, pilot):
            await pilot.resize_terminal(100, 30)
        assert SHOWN_ANSWER in stage.text


@pytest.mark.parametrize("key", ["f1", "question_mark", "ctrl+p"])
async def test_every_screen_over_another_says_so_too_and_so_does_the_one_below(key: str) -> None:
    async with Stage(welcome="Hello").ready(size=(100, 30)) as (pilot, stage):
        async with brings(lambda: stage.app.screen is not stage.screen and stage.app.screen.query(TooSmall), pilot):
            await pilot.press(key)
        above, below = stage.app.screen.query_one(TooSmall), stage.screen.query_one(TooSmall)
        async with brings(lambda: above.display and above.size == (2, 24), pilot):
            await pilot.resize_terminal(2, 24)
        assert below.display
        async with brings(lambda: not above.display and not below.display, pilot):
            await pilot.resize_terminal(100, 30)


async def test_f8_copies_the_last_answer_as_it_was_written_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.screens.terminal.app_on_terminal.keep", lambda text: keep(text, tmp_path))
    async with Stage().ready() as (pilot, stage):
        await pilot.press("f8")
        await answered(pilot, stage, "One?")
        assert stage.notices == [] and stage.app.clipboard == ""
        await press(pilot, "f8", brings=lambda: stage.app.clipboard == ANSWER == (tmp_path / "copied.txt").read_text())
        assert str(tmp_path / "copied.txt") in stage.notice


async def test_resizing_the_terminal_keeps_the_text_and_the_place_at_the_end() -> None:
    async with Stage().running(size=(160, 48)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        before = stage.text
        for size in ((80, 24), (60, 16), (200, 60)):
            async with brings(lambda: stage.screen.size == size, pilot):
                await pilot.resize_terminal(*size)
            assert stage.text == before
            assert stage.app.query_one(Transcript).follows_end


async def test_a_light_theme_has_the_palette_for_light_surfaces() -> None:
    async with Stage().running() as (pilot, stage):
        assert stage.app.query_one(Transcript).palette.dark
        await pilot.press("f4")
        stage.app.theme = "textual-light"
        await until(lambda: not stage.app.query_one(Transcript).palette.dark, pilot)
        assert stage.app.query_one(Transcript).palette.look is Look.DEMO


async def test_no_color_reaches_transcript_and_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with Stage().running() as (_, stage):
        assert not stage.app.query_one(Transcript).palette.colour
        assert not stage.app.palette.colour


def test_no_code_of_a_model_is_imported_by_the_app_or_the_command_line() -> None:
    code = (
        "import sys, ladechat.app, ladechat.shell.cli, ladechat.shell.ask\n"
        "print(*sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


async def test_messages_are_whole_and_cover_nothing() -> None:
    async with Stage().running(size=(80, 24)) as (pilot, stage):
        await answered(pilot, stage, "One?")
        text = "word " * 60
        stage.screen.notify(text)
        line = stage.app.query_one(MessageLine)
        await until(lambda: line.display and line.region.height * line.content_size.width > len(text), pilot)
        for part in (Transcript, Sliders, Prompt, StatusLine, KeyFooter):
            assert not line.region.overlaps(stage.app.query_one(part).region)
        assert stage.app.query_one(Transcript).follows_end
        async with brings(lambda: not line.display, pilot):
            await pilot.click(MessageLine)


@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
async def test_a_message_of_one_row_moves_no_text(size: tuple[int, int]) -> None:
    async with Stage().running(size=size) as (pilot, stage):
        for times in (1, 2, 3):
            await answered(pilot, stage, "Why?", times)
        transcript = stage.app.query_one(Transcript)

        def seen() -> list[str]:
            room = transcript.scrollable_content_region
            return [row[room.x : room.right].rstrip() for row in screen_of(pilot)[room.y : room.bottom]]

        before = seen()
        assert transcript.max_scroll_y > 0 and " tok/s" in before[-2] and before[-1] == ""
        async with brings(lambda: len(seen()) < len(before), pilot):
            stage.screen.notify("One row.")
        assert seen() == before[:-1]
        await act(pilot, stage.app.clear_notifications, brings=lambda: seen() == before)


async def test_messages_since_the_last_key_are_shown_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ladechat.screens.terminal.app_messages.SECONDS_BEFORE_KEYS", math.inf)
    async with Stage().ready() as (pilot, stage):
        for text in ("first", "second", "first"):
            stage.screen.notify(text)
        assert shown(stage) == ["second", "first"]
        await press(pilot, "a", brings=lambda: stage.prompt == "a")
        assert shown(stage) == ["second", "first"]
        stage.screen.notify("third")
        assert shown(stage) == ["third"]
        async with brings(lambda: shown(stage) == [] and stage.prompt == "ab", pilot):
            monkeypatch.setattr("ladechat.screens.terminal.app_messages.SECONDS_BEFORE_KEYS", 0.0)
            await pilot.press("b")


@pytest.mark.full
async def test_a_message_ends_by_itself_and_with_its_screen() -> None:
    async with Stage().ready() as (pilot, stage):
        stage.screen.notify("over soon", timeout=0.01)
        await until(lambda: not shown(stage), pilot)
        async with brings(shows(pilot, HelpScreen), pilot):
            stage.screen.notify("said in the chat")
            await pilot.press("f1")
        assert shown(stage) == []
        async with brings(lambda: stage.app.screen.query_one(MessageLine).display, pilot):
            stage.screen.notify("said in the help")


def shown(stage: Stage) -> list[str]:
    return [message.text for message in stage.app.said]


async def test_tab_walks_as_the_page_is_read() -> None:
    async with Stage(decoder="lookahead").ready() as (pilot, stage):
        walked = []
        for _ in range(7):
            await pilot.press("tab")
            walked.append(stage.app.focused)
        regions = [widget.region.offset for widget in walked if widget is not None]
        assert isinstance(walked[0], Transcript) and isinstance(walked[-1], Prompt)
        assert [place.y for place in regions[1:]] == sorted(place.y for place in regions[1:])
