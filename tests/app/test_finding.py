"""Finding a text in a conversation: where it is marked, next and previous, and the keys that come back afterwards."""

from pathlib import Path

import pytest
from textual.widgets import Input, Label

from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.bars.find_bar import FindBar
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.transcript.transcript import Transcript
from tests.app.listed import kept, new_stage, shown
from tests.app.stage import Stage, answered, begun, footer_names
from tests.fake_engine import FakeEngine
from tests.session.conversations import exchange, write
from tests.waiting import act, brings, press, until


def long_talk(tmp_path: Path) -> None:
    said = [exchange(f"Question {turn}?", f"Answer {turn},\nin the window.") for turn in range(120)]
    said[10] = exchange("A lamp?", "The lamp of the\nlighthouse, and a LAMP.")
    said[90] = exchange("And?", "Lamp.")
    write(tmp_path / "talks", "a", *said)


def count(stage: Stage) -> str:
    return str(stage.app.query_one(FindBar).query_one(Label).content)


def is_open(stage: Stage) -> bool:
    return stage.app.query_one(FindBar).query_one(Input).has_focus


def line_of_mark(stage: Stage) -> str:
    """The line in which the selection begins, if it is in view."""
    transcript = stage.app.query_one(Transcript)
    selection = transcript.text_selection
    if selection is None or selection.start is None:
        return ""
    y = selection.start.y - transcript.scroll_offset.y
    lines = shown(transcript)
    return lines[y].text.strip() if 0 <= y < len(lines) else ""


async def test_places_are_marked_one_after_the_other_and_round_again(tmp_path: Path) -> None:
    long_talk(tmp_path)
    async with new_stage(tmp_path, opened=kept(tmp_path)[0]).ready() as (pilot, stage):
        await press(pilot, "ctrl+f", brings=lambda: is_open(stage))
        await until(lambda: footer_names(stage.app)[:3] == ["Previous", "Next", "Close"], pilot)
        await press(pilot, *"lamp", brings=lambda: count(stage) == "1 of 4 places")
        assert line_of_mark(stage) == "A lamp?", "none is below the view, so it is the first"
        for place, line in (
            ("2 of 4 places", "The lamp of the"),
            ("3 of 4 places", "lighthouse, and a LAMP."),
            ("4 of 4 places", "Lamp."),
            ("1 of 4 places", "A lamp?"),
        ):
            await press(pilot, "enter", brings=lambda: count(stage) == place)
            assert line_of_mark(stage) == line
        await press(pilot, "up", brings=lambda: count(stage) == "4 of 4 places")
        assert stage.screen.get_selected_text() == "Lamp"
        await press(pilot, "down", "down", brings=lambda: count(stage) == "2 of 4 places")
        await press(pilot, "s", brings=lambda: count(stage) == "found nowhere")
        await press(pilot, "escape", brings=lambda: stage.app.query_one(Prompt).has_focus)
        await press(pilot, *"hi", brings=lambda: stage.prompt == "hi")


async def test_the_first_place_is_the_first_in_view_and_a_phrase_may_go_on_in_the_next_line(tmp_path: Path) -> None:
    long_talk(tmp_path)
    async with new_stage(tmp_path, opened=kept(tmp_path)[0]).ready() as (pilot, stage):
        transcript = stage.app.query_one(Transcript)
        await until(lambda: transcript.laid_out, pilot)
        transcript.anchor(False)
        await act(
            pilot, lambda: transcript.scroll_to(y=0, animate=False), brings=lambda: transcript.scroll_offset.y == 0
        )
        await press(pilot, "ctrl+f", brings=lambda: is_open(stage))
        async with brings(lambda: count(stage) == "1 of 1 place", pilot):
            await pilot.press(*"of", "space", *"the", "space", *"lighthouse")
        assert stage.screen.get_selected_text() == "of the\nlighthouse"
        await press(pilot, "ctrl+u", *"question", brings=lambda: count(stage) == "1 of 118 places")


async def test_an_answer_goes_on_while_one_searches_in_it_and_escape_does_not_stop_it() -> None:
    async with Stage(FakeEngine(hold_steps=True)).ready() as (pilot, stage):
        await begun(pilot, stage, 3)
        await press(pilot, "ctrl+f", brings=lambda: is_open(stage))
        await press(pilot, *"one", brings=lambda: count(stage).startswith("1 of"))
        await press(pilot, "escape", brings=lambda: not is_open(stage))
        assert stage.asking
        await act(pilot, stage.engine.release, brings=lambda: not stage.asking)


async def test_notices_are_not_searched_and_nothing_typed_finds_nothing(tmp_path: Path) -> None:
    async with Stage(FakeEngine(answers=("Yes.",)), welcome="a welcome", store=ConversationStore(tmp_path)).ready() as (
        pilot,
        stage,
    ):
        await answered(pilot, stage, "One?")
        await press(pilot, "ctrl+f", brings=lambda: is_open(stage))
        await press(pilot, *"welcome", brings=lambda: count(stage) == "found nowhere")
        await press(pilot, "ctrl+u", brings=lambda: count(stage) == "")


@pytest.mark.parametrize("size", [(40, 10), (80, 24), (200, 60)])
async def test_the_line_has_one_row_at_every_size(size: tuple[int, int], tmp_path: Path) -> None:
    long_talk(tmp_path)
    async with new_stage(tmp_path, opened=kept(tmp_path)[0]).running(size) as (pilot, stage):
        await press(pilot, "ctrl+f", brings=lambda: is_open(stage))
        await press(pilot, *"lamp", brings=lambda: "of 4" in count(stage))
        assert stage.app.query_one(FindBar).region.height == 1
        assert stage.app.query_one(FindBar).query_one(Input).region.width > 10
        assert line_of_mark(stage)
