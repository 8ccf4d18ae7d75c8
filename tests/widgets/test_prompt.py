"""The prompt: what is typed arrives, however fast it comes."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import events
from textual.widgets.text_area import Edit, EditResult

from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.prompt.prompt import SECONDS_BETWEEN_KEYS, Prompt
from tests.app.stage import Driver, Stage
from tests.waiting import brings, press, until

LONG = "the cat sat on the mat, and " * 300


@asynccontextmanager
async def typing() -> AsyncIterator[tuple[Driver, Stage, Prompt]]:
    """Run the app; the prompt has the focus."""
    async with Stage().ready(size=(100, 30)) as (pilot, stage):
        prompt = stage.app.query_one(Prompt)
        await until(lambda: prompt.has_focus, pilot)
        yield pilot, stage, prompt


def insertions(prompt: Prompt, seconds: float = 0.0) -> list[str]:
    """What is inserted into the prompt from now on, each taking so long."""
    inserted: list[str] = []
    edit_prompt = prompt.edit

    def edit(edit: Edit) -> EditResult:
        inserted.append(edit.text)
        time.sleep(seconds)
        return edit_prompt(edit)

    prompt.edit = edit  # type: ignore[method-assign]
    return inserted


async def test_what_is_pasted_without_being_marked_as_such_arrives_whole_and_in_few_insertions() -> None:
    """Each insertion wraps the whole line anew: one for each of thousands of keys would take minutes."""
    async with typing() as (pilot, stage, prompt):
        inserted = insertions(prompt)
        for character in LONG:
            stage.app.post_message(events.Key("space" if character == " " else character, character))
        await until(lambda: len(prompt.text) == len(LONG), pilot)
        assert prompt.text == "".join(inserted) == LONG
        assert len(inserted) < len(LONG) / 10


async def test_keys_that_were_read_together_are_no_typing_however_late_they_are_handled() -> None:
    """In a full prompt each insertion takes longer than the gap between two keys that somebody types."""
    async with typing() as (pilot, stage, prompt):
        inserted = insertions(prompt, 2 * SECONDS_BETWEEN_KEYS)  # the work of a full prompt
        keys = [events.Key(character, character) for character in "x" * 60]
        for key in keys:
            key.time = keys[0].time  # as the driver sets it: when their bytes were read
            stage.app.post_message(key)
        await until(lambda: len(prompt.document.text) == len(keys), pilot)
        assert len(inserted) < len(keys) / 3


async def test_two_hundred_lines_are_cleared_and_selected_by_keys() -> None:
    async with typing() as (pilot, _, prompt):
        lines = "\n".join(f"line {number}" for number in range(200))
        prompt.load_text(lines)
        prompt.move_cursor((150, 3))
        await press(pilot, "ctrl+a", brings=lambda: prompt.selected_text == lines)
        await press(pilot, "backspace", brings=lambda: prompt.text == "")

        prompt.load_text(lines)
        await press(pilot, "ctrl+end", brings=lambda: prompt.cursor_location == prompt.document.end)
        await press(pilot, "ctrl+shift+home", brings=lambda: prompt.selected_text == lines)
        await press(pilot, "ctrl+home", brings=lambda: prompt.cursor_location == (0, 0) and not prompt.selected_text)
        await press(pilot, "ctrl+shift+end", brings=lambda: prompt.selected_text == lines)


async def test_keys_that_steer_act_behind_the_characters_before_them() -> None:
    async with typing() as (pilot, stage, prompt):
        async with brings(lambda: prompt.text == "abxde\nlast", pilot):
            await pilot.press(*"abc", "backspace", *"de", "left", "left", "x", "end", "ctrl+j", *"last")
        await press(pilot, "up", "home", *"go ", "enter", brings=lambda: bool(stage.engine.questions))
        assert stage.engine.questions[-1].messages[-1].content == "go abxde\nlast"


async def test_no_letter_overtakes_the_backspace_before_it() -> None:
    """The keys of an app at work wait in line together, though nobody typed them at once."""
    async with typing() as (pilot, stage, prompt):
        await press(pilot, *"the cart", brings=lambda: prompt.text == "the cart")
        for key, character in (("backspace", "\x7f"), ("backspace", "\x7f"), ("t", "t"), ("left", None), ("h", "h")):
            stage.app.post_message(events.Key(key, character))
        await until(lambda: prompt.text == "the caht", pilot)


async def test_an_undo_brings_back_what_was_deleted_and_nothing_that_was_sent() -> None:
    async with typing() as (pilot, stage, prompt):
        async with brings(lambda: stage.text.count(" tokens a pass") == 1 and not stage.asking, pilot):
            await pilot.press("o", "n", "e", "enter", "ctrl+z")
        assert prompt.text == ""
        async with brings(lambda: stage.notice.startswith("There is no command /nope"), pilot):
            await pilot.press("slash", *"nope", "enter")
        await pilot.press("ctrl+u", "ctrl+z")
        assert prompt.text == "/nope", "what was refused is there to be mended, and is undone as what was typed"
        await pilot.press("ctrl+u", *"/help", "enter", "escape", "ctrl+z")
        assert prompt.text == ""
        await pilot.press("t", "w", "o", "ctrl+u", "ctrl+z")
        assert prompt.text == "two"


async def test_indentation_tabs_double_spaces_and_line_breaks_arrive_as_they_were_pasted() -> None:
    async with typing() as (pilot, stage, prompt):
        for pasted in ("  if  x:\n\treturn  1  \n\n\tnext", "one\r\n\ttwo\r\nthree", "one\ntwo"):
            async with brings(lambda: prompt.text == f"\n{pasted}\n" or prompt.text == f"\r\n{pasted}\r\n", pilot):
                stage.app.post_message(events.Paste(f"\r\n{pasted}\r\n" if "\r" in pasted else f"\n{pasted}\n"))
            asked = len(stage.asked)
            await press(pilot, "enter", brings=lambda: len(stage.asked) > asked and not stage.asking)
            assert stage.asked[-1] == pasted
        assert "  if  x:\n    return  1" in stage.text


@pytest.mark.parametrize("key", ["ctrl+j", "alt+enter", "shift+enter"])
async def test_keys_that_begin_a_new_line(key: str) -> None:
    async with typing() as (pilot, stage, prompt):
        await press(pilot, "a", key, "b", brings=lambda: prompt.text == "a\nb")
        assert stage.asked == []


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_prompt_grows_with_its_text_to_a_third_of_the_screen(size: tuple[int, int]) -> None:
    async with Stage().ready(size=size) as (pilot, stage):
        prompt = stage.app.query_one(Prompt)
        empty = prompt.outer_size.height
        prompt.load_text("a\nb\nc")
        await until(lambda: prompt.outer_size.height == empty + 2, pilot)
        prompt.load_text("a\n" * 100)
        await until(lambda: size[1] / 4 < prompt.outer_size.height <= size[1] / 3, pilot)
        below = stage.app.query_one(StatusLine).region.y
        await until(lambda: prompt.region.bottom == below, pilot)
