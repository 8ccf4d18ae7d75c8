"""The panels beside the conversation come when they are needed, and do not flicker from step to step."""

import msgspec
import pytest

from ladechat import catalog
from ladechat.protocol import Settings, Step
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.panels.panel import StepPanel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.slot_strip import SlotStrip
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.sliders.sliders import Sliders
from ladechat.widgets.steps.answer_steps import Arrangement
from tests.waiting import brings, until
from tests.widgets import sample_steps
from tests.widgets.hosting import hosted, lines
from tests.widgets.sample_steps import answer, finished, plain_step, sharpening, window_view

FULL = answer(5, 3, 5)[2]
POOL_ONLY = msgspec.structs.replace(FULL, window=None)
DRAFTS_ONLY = msgspec.structs.replace(POOL_ONLY, pool=None)
WINDOW_ONLY = msgspec.structs.replace(FULL, pool=None, draft=None)


def after(decoder: str, *steps: Step) -> list[tuple[bool, bool]]:
    """Whether the window and the drafts are shown, before the first step and after each."""
    arrangement = Arrangement().for_decoder(catalog.DECODERS[decoder])
    shown = [(arrangement.window, arrangement.drafts)]
    for step in steps:
        arrangement = arrangement.after_step(step)
        shown.append((arrangement.window, arrangement.drafts))
    return shown


def test_the_first_step_of_a_decoder_says_which_panels_it_needs() -> None:
    assert after("suffix", DRAFTS_ONLY) == [(False, True), (False, True)]
    assert after("jacobi", WINDOW_ONLY) == [(True, True), (True, False)]
    assert after("lookahead", FULL) == [(True, True), (True, True)]


@pytest.mark.parametrize("name", catalog.DECODERS)
def test_before_its_first_step_a_decoder_has_the_panels_that_it_will_have(name: str) -> None:
    """While the model of Medusa was loaded, its panel was headed Jacobi window."""
    arrangement = Arrangement().for_decoder(catalog.DECODERS[name])
    assert arrangement.window == (name in ("lookahead", "jacobi"))
    assert arrangement.lens == (name == "hidden_transfer")


async def test_at_the_end_of_an_answer_all_panels_show_the_same_pass() -> None:
    """The biography told of the last token, a drafted end of text, beside panels of the pass before."""
    first = answer(5, 3, 5)[0]
    last = next(one for one in answer(5, 3, 5) if len(one.token_ids) > 1)
    end = msgspec.structs.replace(last, index=2, token_ids=[2], pieces=["◌"], logprobs=[0.0], origins=["prompt"])
    steps = [first, msgspec.structs.replace(last, index=1), end]
    async with hosted(SidePanels(), 60, 60) as (_, side):
        side.show_settings(Settings(decoder="lookahead"), catalog.DECODERS, {})
        side.show_steps(steps)
        biography = side.query_one(BiographyPanel)
        assert "pass 3" in biography.explain()
        side.show_finished(finished(steps))
        moments = {panel.moment.partition(",")[0] for panel in side.query(StepPanel)}
        assert moments == {"pass 2 of 3"} and "pass 2 " in biography.explain() and "◌" not in biography.explain()


async def test_without_an_accepted_draft_panels_stay_at_the_last_pass_whose_block_was_not_cut() -> None:
    """A lesson ended beside "W 5, cut to 0"."""
    left = [5, 5, 3, 0]
    blocks = [window_view([["a"] * (1 + width)], ["b"] * (1 + width)) for width in left]
    steps = [sample_steps.step(["a"], index=index, window=block) for index, block in enumerate(blocks)]
    async with hosted(SidePanels(), 60, 60) as (_, side):
        side.show_settings(Settings(decoder="jacobi", parameters={"window": 5}), catalog.DECODERS, {})
        side.show_steps(steps)
        window = side.query_one(WindowPanel)
        assert "cut to 0" in lines(window)[0]
        side.show_finished(finished(steps))
        await until(lambda: "cut" not in lines(window)[0])
        assert "W 5" in lines(window)[0] and {panel.moment for panel in side.query(StepPanel)} == {window.moment}
        assert window.moment.startswith("pass 2 of 4") and "several" not in window.moment


def test_a_step_that_has_nothing_for_a_panel_does_not_take_it_away() -> None:
    assert after("lookahead", FULL, POOL_ONLY, plain_step(), FULL) == [(True, True)] * 5
    assert after("auto", plain_step(), POOL_ONLY, FULL, POOL_ONLY) == [(False, True)] * 3 + [(True, True)] * 2


def test_with_hidden_transfer_pseudo_states_take_the_place_of_the_window() -> None:
    arrangement = Arrangement().for_decoder(catalog.DECODERS["hidden_transfer"])
    assert (arrangement.window, arrangement.lens) == (False, True)
    with_lens = msgspec.structs.replace(DRAFTS_ONLY, lens=sharpening("a", ["b", "c"], seed=0, layers=7))
    for step in (DRAFTS_ONLY, with_lens, plain_step(), DRAFTS_ONLY):
        arrangement = arrangement.after_step(step)
        assert (arrangement.window, arrangement.drafts, arrangement.lens) == (False, True, True)
    assert arrangement.lens_rows == 7
    assert arrangement.for_turn().lens
    arrangement = arrangement.for_decoder(catalog.DECODERS["lookahead"])
    assert (arrangement.window, arrangement.lens) == (True, False)
    assert arrangement.after_step(with_lens).lens, "whatever a decoder is called, what it shows is shown"


def test_a_turn_begins_with_the_panels_that_the_turn_before_used() -> None:
    arrangement = Arrangement().for_decoder(catalog.DECODERS["auto"]).after_step(FULL).for_turn()
    assert arrangement.window
    arrangement = arrangement.after_step(POOL_ONLY)
    assert arrangement.window
    assert not arrangement.for_turn().window


def test_w_is_remembered_with_each_step_as_it_was_set() -> None:
    arrangement = Arrangement(window_set=7).after_step(WINDOW_ONLY)
    assert arrangement.window_set == arrangement.for_turn().window_set == 7


async def test_the_strip_of_slots_follows_a_slider_while_it_moves() -> None:
    async with hosted(SidePanels(), 60, 40) as (pilot, side):
        strip, sliders = side.query_one(SlotStrip), side.query_one(Sliders)
        for decoder, known in (("auto", False), ("hidden_transfer", False), ("lookahead", True)):
            side.show_settings(Settings(decoder=decoder), catalog.DECODERS, {})
            assert strip.has_class("-known") is known
        await until(lambda: len(sliders.values) == 3, pilot)
        assert "".join(part for part, _ in strip.rows(80, 2)[0]).startswith("≤ 20 slots ")
        slider = next(one for one in sliders.parameter_sliders if one.parameter.name == "ngram")
        slider.focus()
        async with brings(lambda: "20 → 30 slots" in strip.rows(80, 2)[0][0][0], pilot):
            await pilot.press("right")


@pytest.mark.parametrize(("decoder", "idle"), [("auto", True), ("lookahead", False)])
async def test_numbers_that_are_not_in_use_are_explained_as_that(decoder: str, idle: bool) -> None:
    async with hosted(SidePanels(), 60, 40) as (pilot, side):
        side.show_settings(Settings(decoder=decoder), catalog.DECODERS, {})
        await until(lambda: "W = 5" in dict(side.explanations()), pilot)
        explained = dict(side.explanations())
        for label in ("W = 5", "N = 3", "G = 5"):
            assert explained[label].startswith("A setting of lookahead, not in use now") is idle


async def test_the_block_of_jacobi_decoding_has_the_w_of_the_step_that_is_shown() -> None:
    async with hosted(SidePanels(), 60, 40) as (_, side):
        for width in (9, 4):
            side.show_settings(Settings(decoder="jacobi", parameters={"window": width}), catalog.DECODERS, {})
            side.show_steps([WINDOW_ONLY])
        window = side.query_one(WindowPanel)
        assert window.width_set == 4
        side.look_at(side.answer, 0)
        assert window.width_set == 9
