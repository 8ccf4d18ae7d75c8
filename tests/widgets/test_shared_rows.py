"""Rows of the panels go to those that have something to show in them, and do not change from pass to pass."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, strategies as st
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import Label

from ladechat import catalog
from ladechat.protocol import Settings, Step
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.panels.panel import Needs, Panel
from ladechat.widgets.panels.shared_rows import shared
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.slot_strip import SlotStrip
from ladechat.widgets.steps.draft_tree import slots_of
from tests.waiting import brings, until
from tests.widgets.hosting import hosted, lines
from tests.widgets.sample_steps import answer, plain_step, rivals, sharpening, timing

STEPS = answer(5, 3, 5)
SIZES = [(36, 21), (36, 27), (56, 30), (72, 40), (84, 52)]
needs = st.lists(st.integers(1, 20), min_size=3, max_size=3).map(lambda rows: Needs(*sorted(rows)))


def steps_of(decoder: str) -> list[Step]:
    """An answer with what this decoder has to show."""
    if decoder == "autoregressive":
        return [msgspec.structs.replace(plain_step(index=index), rivals=[rivals(" pool")]) for index in range(60)]
    lens = sharpening("a", ["b", "c", "d"], seed=0, layers=6) if decoder == "hidden_transfer" else None
    steps = [
        msgspec.structs.replace(
            step,
            window=step.window if decoder in ("lookahead", "auto", "jacobi") else None,
            pool=step.pool if decoder in ("lookahead", "auto") else None,
            lens=lens,
        )
        for step in STEPS
    ]
    return [msgspec.structs.replace(step, timing=timing(len(slots_of(step)))) for step in steps]


def shown(side: SidePanels) -> list[Panel]:
    """The panels on the screen, but for the strip of slots, from the top."""
    return [panel for panel in side.query(Panel) if panel.region.area and not isinstance(panel, SlotStrip)]


def heights(side: SidePanels) -> dict[str | None, int]:
    return {panel.id: panel.region.height for panel in shown(side)}


def drawn(side: SidePanels) -> bool:
    return not any(panel.drawing.waits for panel in side.query(Panel))


@given(st.integers(0, 60), st.lists(needs, min_size=1, max_size=5))
def test_all_rows_are_given_and_none_is_more_than_a_panel_can_use_but_for_the_last(
    room: int, all_need: list[Needs]
) -> None:
    rows = shared(room, all_need)
    assert sum(rows) == room
    assert all(own <= need.most for own, need in zip(rows[:-1], all_need[:-1], strict=True))
    if any(own > need.least for own, need in zip(rows, all_need, strict=True)):
        assert all(own >= need.least for own, need in zip(rows, all_need, strict=True))
    if any(own > need.usual for own, need in zip(rows, all_need, strict=True)):
        assert all(own >= need.usual for own, need in zip(rows, all_need, strict=True))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("decoder", catalog.DECODERS)
async def test_no_panel_has_empty_rows_that_another_lacks(decoder: str, size: tuple[int, int]) -> None:
    async with hosted(SidePanels(), *size) as (pilot, side):
        side.show_settings(Settings(decoder=decoder), catalog.DECODERS, {})
        side.show_steps(steps_of(decoder))
        await until(lambda: drawn(side) and side.query_one("#speed").region.area, pilot)
        room = {panel: (panel.region.height, panel.needs()) for panel in shown(side)}
        assert all(rows >= need.least for rows, need in room.values()), room
        if any(rows < need.usual for rows, need in room.values()):
            assert all(rows <= max(need.usual, need.least) for rows, need in room.values()), room
        assert sum(not line for panel in room if panel.id != "speed" for line in lines(panel)) <= size[1] // 2


@pytest.mark.parametrize("decoder", ["auto", "lookahead", "suffix", "hidden_transfer"])
async def test_rows_stay_where_they_are_from_pass_to_pass_and_while_one_looks_back(decoder: str) -> None:
    async with hosted(SidePanels(), 56, 30) as (pilot, side):
        side.show_settings(Settings(decoder=decoder), catalog.DECODERS, {})
        seen = []
        for step in steps_of(decoder):
            side.show_steps([step])
            await until(lambda: drawn(side), pilot)
            seen.append(heights(side))
        assert sum(one != other for one, other in pairwise(seen)) <= 2
        for place in range(len(seen)):
            side.look_at(side.answer, place)
            await until(lambda: drawn(side), pilot)
            assert heights(side) == seen[-1]


async def test_plain_decoding_has_no_panel_of_drafts() -> None:
    async with hosted(SidePanels(), 36, 24) as (pilot, side):
        side.show_settings(Settings(decoder="autoregressive"), catalog.DECODERS, {})
        await until(lambda: set(heights(side)) == {"biography", "speed"}, pilot)
        side.show_settings(Settings(decoder="suffix"), catalog.DECODERS, {})
        await until(lambda: "pool" in heights(side), pilot)


async def test_plain_decoding_lists_the_latest_tokens_with_what_else_was_likely() -> None:
    async with hosted(SidePanels(), 72, 47) as (pilot, side):
        side.show_settings(Settings(decoder="autoregressive"), catalog.DECODERS, {})
        steps = steps_of("autoregressive")
        steps[-1] = msgspec.structs.replace(plain_step(" rare", 59), logprobs=[-4.0], rivals=[rivals(" pool")])
        side.show_steps(steps)
        panel = side.query_one(BiographyPanel)
        await until(lambda: drawn(side) and "rare" in lines(panel)[-1], pilot)
        assert heights(side)["biography"] > 30 and all(lines(panel))
        assert lines(panel)[-1].split()[1:3] == ["2", "%"] and "‹·pool› 90 %" in lines(panel)[-1]
        assert "90 %" in lines(panel)[-2] and "‹·pool›" not in lines(panel)[-2], "a token is no rival of itself"
        side.look_at(side.answer, 58, 0)
        await until(lambda: "own token in pass 59" in " ".join(lines(panel)), pilot)
        assert not any("rare" in line for line in lines(panel))


class Viewing(App[None]):
    """The panels, and a key of the user's for their views."""

    BINDINGS = [Binding("v", "app.switch_view", "View")]  # noqa: RUF012 - as Textual declares it

    def __init__(self) -> None:
        super().__init__()
        self.keymap = {"view": "v"}
        self.side = SidePanels()

    def compose(self) -> ComposeResult:
        yield self.side

    def action_switch_view(self) -> None:
        self.side.switch_view()


@pytest.mark.parametrize("size", [(36, 24), (60, 50)])
@pytest.mark.parametrize("decoder", ["autoregressive", "auto", "lookahead"])
async def test_a_view_says_how_to_get_back_and_other_panels_fill_what_it_leaves(
    decoder: str, size: tuple[int, int]
) -> None:
    async with Viewing().run_test(size=size) as pilot:
        assert isinstance(pilot.app, Viewing)
        side = pilot.app.side
        way_back = side.query_one("#way-back", Label)
        side.show_settings(Settings(decoder=decoder), catalog.DECODERS, {})
        side.show_steps(steps_of(decoder))
        for view, text in (("mask", "v, v: all panels"), ("biography", "v: all panels")):
            async with brings(lambda: str(way_back.content) == text and view in heights(side), pilot):
                await pilot.press("v")
            await until(lambda: drawn(side), pilot)
            empty = sum(not line for panel in shown(side) for line in lines(panel))
            assert empty <= size[1] // 2
        async with brings(lambda: not way_back.display, pilot):
            await pilot.press("v")
