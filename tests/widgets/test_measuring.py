"""One measure: where the cursor of the prompt stands is where a terminal is after what was drawn."""

import pytest
from rich.cells import cell_len as rich_cell_len, chop_cells, get_character_cell_size, set_cell_size, split_text

from ladechat.widgets.cells import cell_len, cell_size, drawn, measure_alike, printable
from ladechat.widgets.prompt.prompt import Prompt
from tests.app.stage import Stage
from tests.waiting import act, until

HINDI, HAND, FAMILY, SKIN, FLAG = "हिन्दी में", "✍️", "👨‍👩‍👧", "👋🏽", "🇩🇪"
TEXTS = (HINDI, HAND, FAMILY, SKIN, FLAG, "漢字", "e\u0301", "plain", "two\nlines")


@pytest.fixture(autouse=True)
def _alike() -> None:
    measure_alike()


@pytest.mark.parametrize("text", TEXTS)
def test_rich_and_textual_measure_what_is_drawn(text: str) -> None:
    cells = sum(map(cell_size, text))
    assert rich_cell_len(text) == sum(map(get_character_cell_size, text)) == cells
    assert "\n" in text or cell_len(printable(text)) == cell_len(drawn(text)) == cells


@pytest.mark.parametrize("text", [HINDI, FAMILY, "漢字"])
def test_what_is_cut_has_the_cells_that_were_asked_for(text: str) -> None:
    for width in range(1, cell_len(text) + 1):
        assert cell_len(set_cell_size(text, width)) == width
        left, right = split_text(text, width)
        assert cell_len(left) == width and cell_len(left + right) == cell_len(text)
    assert "".join(chop_cells(text, 3)) == text


@pytest.mark.parametrize(("text", "cells"), [(HINDI, 7), (HAND, 1), (FAMILY, 6), (SKIN, 2), (FLAG, 2), ("漢字", 4)])
async def test_the_cursor_stands_behind_what_was_typed_in_any_script(text: str, cells: int) -> None:
    async with Stage().running(size=(100, 30)) as (pilot, stage):
        prompt = stage.app.query_one(Prompt)
        await until(lambda: prompt.has_focus, pilot)
        left = prompt.cursor_screen_offset.x
        await act(pilot, lambda: prompt.insert(text), brings=lambda: prompt.cursor_screen_offset.x == left + cells)
        assert prompt.text == text
