"""What was pasted is seen by its size, where the prompt shows only a part of it."""

import pytest
from textual import events

from ladechat.widgets.prompt.above_prompt import TypedSize, size_of
from tests.app.stage import Stage
from tests.waiting import brings, press, until


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n" * 5 + "b", "6 lines, 11 characters"),
        ("a\n" * 6, "6 lines, 12 characters"),
        ("x" * 3120, "1 line, 3,120 characters"),
        ("y" * 64 + "\n" * 47, "47 lines, 111 characters"),
    ],
)
def test_a_text_has_a_size_in_lines_and_characters(text: str, said: str) -> None:
    assert size_of(text) == said


async def test_a_paste_shows_its_size_above_the_prompt_until_it_is_sent() -> None:
    async with Stage().running(size=(80, 24)) as (pilot, stage):
        line, prompt = stage.app.query_one(TypedSize), stage.screen._prompt
        await until(lambda: prompt.has_focus, pilot)
        async with brings(lambda: line.display and line.region.height == 1, pilot):
            stage.app.post_message(events.Paste("what is this?\n" * 47))
        assert line.content == "47 lines, 658 characters"
        assert line.region.bottom == prompt.region.y and prompt.region.bottom < 24
        await until(lambda: stage.activity == "ready", pilot)
        await press(pilot, "enter", brings=lambda: bool(stage.engine.questions) and not line.display)
