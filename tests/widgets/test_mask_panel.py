"""The mask of a pass as it is drawn: which cell is filled, in which colour, and what is said of it."""

import msgspec
import pytest
from rich.style import Style
from textual.events import MouseScrollDown

from ladechat.palette import Palette
from ladechat.widgets.cells import visible
from ladechat.widgets.panels.mask_panel import SEEN, UNSEEN, MaskPanel
from ladechat.widgets.panels.pool_panel import PoolPanel
from ladechat.widgets.steps.draft_tree import slots_of
from tests.waiting import until
from tests.widgets.hosting import Host, drawn, hosted, lines, showing, style_of
from tests.widgets.sample_steps import (
    answer,
    candidate,
    lens_view,
    plain_step,
    pool_view,
    step,
    timing,
    window_view,
)

GUESSES = [candidate(["a", "b"], "prompt", 2), candidate(["a", "c"], "suffix", 1), candidate(["x"], "suffix")]
DRAFTS = step(["a", "b", "."], index=4, pool=pool_view("the", GUESSES), time=timing(5))
FILLED = ["■····", "■■···", "■■■··", "■■·■·", "■···■"]
"""Slots: the; a, b; c below a; x."""


LABEL = 20
"""Cells before the picture in a panel of at least 48."""


def picture(panel: MaskPanel) -> list[str]:
    """Each line of the mask: its cells, without borders."""
    shown = [line[LABEL:] for line in lines(panel)[2:] if SEEN in line[LABEL:]]
    return ["".join(sign for sign in line if sign in f"{SEEN}{UNSEEN}") for line in shown]


async def test_each_slot_has_a_line_with_its_guess_its_verdict_and_what_it_sees() -> None:
    async with hosted(showing(MaskPanel(), DRAFTS), 60, 12) as (_, panel):
        assert picture(panel) == FILLED
        shown = lines(panel)
        assert shown[0].split() == ["attention", "mask", "of", "this", "pass", "5", "slots", "=", "1", "+", "4"]
        assert [line[:LABEL].split() for line in shown[2:7]] == [
            ["last", "the"], ["guess", "1", "✓a"], ["✓b"], ["guess", "2", "✗c"], ["guess", "3", "✗x"],
        ]  # fmt: skip
        assert style_of(panel, "a", 3).color == Palette().style_of_step(4, 3).color
        assert shown[7].startswith(f"{SEEN} the slot of this line sees")
        assert shown[8] == "and all see the 120 tokens of the text before"


BOTH = step(
    ["b", "."],
    index=4,
    window=window_view([["the", "a"], ["b", "c"]], ["x", "y"]),
    pool=pool_view(
        "the", [candidate(["a", "c"], "window"), candidate(["b"], "window", 1), candidate(["q", "r"], "prompt")]
    ),
    time=timing(6),
)


async def test_the_two_branches_are_named_and_guesses_have_the_numbers_of_the_pool() -> None:
    async with hosted(showing(MaskPanel(), BOTH), 60, 16) as (_, panel):
        shown = lines(panel)
        assert [line.strip("─ ").strip() for line in shown if line.startswith("──")] == [
            "lookahead branch", "verification branch",
        ]  # fmt: skip
        assert shown[1].split() == ["last", "−2", "−1", "guesses"], "columns have names as far as there is room"
        labels = [line[:LABEL].split() for line in shown[2:] if SEEN in line[LABEL:]]
        assert labels[-2:] == [["guess", "3", "✗q"], ["–r"]]
    async with hosted(showing(MaskPanel(), BOTH), 40, 16) as (_, narrow):
        assert lines(narrow)[1].split()[-1] in ("guesses", "guess", "G"), "no block is without a name"
    async with hosted(showing(PoolPanel(), BOTH), 60, 12) as (_, pool):
        assert any(line.startswith("3 ✗q –r") for line in lines(pool))


async def test_the_legend_has_the_signs_of_the_picture() -> None:
    """At two slots a character it explained ■ below a picture of ▌, ▐ and █."""
    large = answer(12, 6)[2]
    many = msgspec.structs.replace(large, timing=timing(len(slots_of(large))))
    for shown, signs in ((DRAFTS, "■"), (many, "■▌▐█")):
        async with hosted(showing(MaskPanel(), shown), 48, 80) as (_, panel):
            legend = next(line for line in lines(panel) if " sees " in line)
            assert sorted(set("".join(line[LABEL:] for line in lines(panel)[2:] if line != legend)) & set("■▌▐█")) == (
                sorted(set(legend) & set("■▌▐█"))
            )
            assert set(legend) & set("■▌▐█") == set(signs)


@pytest.mark.parametrize("size", [(48, 30), (36, 20), (60, 12)])
async def test_sixty_slots_have_sixty_lines_which_scroll_to_the_selected_one(size: tuple[int, int]) -> None:
    large = answer(12, 6)[2]
    slots = slots_of(large)
    many = msgspec.structs.replace(large, timing=timing(len(slots)))
    async with hosted(showing(MaskPanel(), many), *size) as (pilot, panel):
        for index, slot in enumerate(slots):
            panel.slot = index
            shown = await drawn(pilot, panel)
            label = next(line for line in range(2, size[1]) if style_of_label(panel, line).reverse)
            assert visible(slot.piece)[:4] in shown[label]
        panel.slot = None
        assert "more" in (await drawn(pilot, panel))[0]


def style_of_label(panel: MaskPanel, line: int) -> Style:
    """The style of the token at the beginning of a line."""
    strip = panel.render_lines(panel.size.region)[line]
    return next((one.style or Style() for one in strip if one.style and one.style.reverse), Style())


async def test_the_wheel_scrolls_what_does_not_fit() -> None:
    large = answer(12, 6)[2]
    async with hosted(showing(MaskPanel(), large), 60, 12) as (pilot, panel):
        first = lines(panel)[2]
        panel.post_message(MouseScrollDown(panel, 5, 5, 0, 1, 0, False, False, False))
        await until(lambda: lines(panel)[2] != first, pilot)


async def test_pseudo_states_of_the_last_accepted_slot_see_its_path_and_those_before_them() -> None:
    lens = lens_view("the", [["a"], ["a", "b"], ["a", "b"]])
    panel = showing(MaskPanel(), msgspec.structs.replace(DRAFTS, lens=lens))
    panel.carriers = 5
    async with hosted(panel, 60, 16) as (pilot, _):
        shown = lines(panel)
        assert "── pseudo states of ‹b› ───" in "\n".join(shown)
        rows = [line for line in shown if line[:LABEL].split()[-1:] in (["t+2"], ["t+3"])]
        assert [line[LABEL:].count(SEEN) for line in rows] == [4, 5], "the, a, b; itself; and the second sees the first"
        panel.carriers = 2
        panel.refresh()
        assert "pseudo" not in "".join(await drawn(pilot, panel)), "the third slot carried none"
        panel.carriers = 5
        panel.slot = 4
        assert "pseudo states of ‹x›" in "\n".join(await drawn(pilot, panel))


async def test_the_scale_does_not_change_from_step_to_step() -> None:
    panel = MaskPanel()
    big = msgspec.structs.replace(DRAFTS, timing=timing(30))
    async with Host(panel, 60, 12).run_test() as pilot:
        panel.show_step(big)
        assert "25 of the slots are not named in this recording" in (await drawn(pilot, panel))
        panel.show_step(DRAFTS)
        small = (await drawn(pilot, panel))[3]
        panel.clear()
        assert (await drawn(pilot, panel))[1] == "Fills with the first pass."
        panel.show_step(DRAFTS)
        assert len((await drawn(pilot, panel))[3]) > len(small), "the other was as small as for the largest pass"


def test_it_explains_the_pass_in_its_numbers() -> None:
    panel = MaskPanel()
    assert "from the first pass on" in panel.explain()
    panel.show_step(DRAFTS)
    assert panel.explain().startswith("5 slots went through the model at once: the last token; 4 drafts in guesses.")
    panel.show_step(BOTH)
    assert "3 in the window, the lookahead branch; 2 drafts in guesses, the verification branch." in panel.explain()
    panel.show_step(plain_step())
    assert panel.explain().startswith("One slot, the last token, which sees itself and the 120 tokens")


@pytest.mark.parametrize("size", [(36, 10), (60, 12), (84, 40), (20, 6), (12, 3), (3, 1)])
async def test_any_answer_fits_any_size(size: tuple[int, int]) -> None:
    panel = MaskPanel()
    for each in (*answer(5, 16)[:4], *answer(3, 2)[:4]):
        panel.show_step(each)
    async with Host(panel, *size).run_test():
        lines(panel)
