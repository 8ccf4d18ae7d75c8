"""The mask of a pass as it is drawn: which cell is filled, in which colour, and what is said of it."""

import msgspec
import pytest
from rich.style import Style

from ladechat.palette import Palette
from ladechat.widgets.panels.mask_panel import UPPER_HALF, MaskPanel
from tests.widgets.hosting import Host, drawn, hosted, lines, showing
from tests.widgets.sample_steps import answer, candidate, plain_step, pool_view, step, timing, window_view

GUESSES = [candidate(["a", "b"], "prompt", 2), candidate(["a", "c"], "suffix", 1), candidate(["x"], "suffix")]
DRAFTS = step(["a", "b", "."], index=4, pool=pool_view("the", GUESSES), time=timing(5))
FILLED = ["#....", "##...", "###..", "##.#.", "#...#"]
"""Slots: the; a, b; c below a; x."""


def cells(panel: MaskPanel, size: int) -> list[list[Style]]:
    """The style of each cell of the mask, line by line."""
    styles: list[list[Style]] = []
    for strip in panel.render_lines(panel.size.region)[1:]:
        row: list[Style] = []
        for segment in strip:
            row += [segment.style or Style()] * len(segment.text)
        styles.append(row[:size])
    return styles


async def test_with_room_a_slot_has_a_line_and_two_cells_a_column() -> None:
    async with hosted(showing(MaskPanel(), DRAFTS), 60, 12) as (pilot, panel):
        styles = cells(panel, 10)[:5]
        empty = styles[0][8].bgcolor
        assert ["".join("#."[one.bgcolor == empty] for one in row[::2]) for row in styles] == FILLED
        step_colour = Palette().style_of_step(4, 3).color
        assert {row[0].bgcolor for row in styles[1:3]} == {step_colour}, "a and b were accepted"
        assert step_colour not in {one.bgcolor for row in (styles[0], *styles[3:]) for one in row}
        shown = lines(panel)
        assert shown[0].split() == ["attention", "mask", "of", "this", "pass", "5", "slots", "·", "3", "branches"]
        assert [line.split() for line in shown[1:6]] == [
            ["last", "the"], ["branch", "1", "a"], ["b"], ["branch", "2", "c"], ["branch", "3", "x"],
        ]  # fmt: skip
        assert shown[6] == "filled: row sees column · in colour: accepted"
        assert shown[7] == "and all see the 120 tokens before"
        panel.palette = Palette(colour=False)
        assert (await drawn(pilot, panel))[6] == "filled: row sees column · strongest: accepted"


async def test_with_little_room_two_slots_share_a_line() -> None:
    async with hosted(showing(MaskPanel(), DRAFTS), 36, 7) as (_, panel):
        assert [line[:5] for line in lines(panel)[1:4]] == [UPPER_HALF * 5] * 3
        styles = cells(panel, 5)[:3]
        empty = styles[0][4].color
        halves = [[one.color for one in row] for row in styles], [[one.bgcolor for one in row] for row in styles]
        drawn_rows = ["".join("#."[one == empty] for one in row) for pair in zip(*halves, strict=True) for row in pair]
        assert drawn_rows[:5] == FILLED


async def test_the_scale_does_not_change_from_step_to_step() -> None:
    panel = MaskPanel()
    big = msgspec.structs.replace(DRAFTS, timing=timing(40))
    async with Host(panel, 60, 12).run_test() as pilot:
        panel.show_step(big)
        assert "35 of the slots are not named in this recording" in (await drawn(pilot, panel))
        panel.show_step(DRAFTS)
        assert UPPER_HALF in (await drawn(pilot, panel))[1], "as small as for the largest pass of the answer"
        panel.clear()
        assert (await drawn(pilot, panel))[1] == "Fills with the first pass."
        panel.show_step(DRAFTS)
        assert UPPER_HALF not in "".join(await drawn(pilot, panel))


def test_it_explains_the_pass_in_its_numbers() -> None:
    panel = MaskPanel()
    assert "from the first pass on" in panel.explain()
    panel.show_step(DRAFTS)
    assert panel.explain().startswith("5 slots went through the model at once: the last token and 4 drafted tokens.")
    assert "So 3 branches had one pass together" in panel.explain()
    known = [*GUESSES[:1], candidate(["x"], "window")]
    window = window_view([["the", "x"]], ["y", "z"])
    panel.show_step(step(["a", "b", "."], window=window, pool=pool_view("the", known), time=timing(4)))
    assert "the last token, 1 guess of the Jacobi window and 2 drafted tokens." in panel.explain()
    assert "So the window and 1 branch had one pass together" in panel.explain()
    panel.show_step(plain_step())
    assert panel.explain().startswith("One slot, the last token, which sees itself and the 120 tokens")


@pytest.mark.parametrize("size", [(36, 10), (60, 12), (84, 40), (20, 6), (12, 3), (3, 1)])
async def test_any_answer_fits_any_size(size: tuple[int, int]) -> None:
    panel = MaskPanel()
    for each in (*answer(5, 16)[:4], *answer(3, 2)[:4]):
        panel.show_step(each)
    async with Host(panel, *size).run_test():
        lines(panel)
