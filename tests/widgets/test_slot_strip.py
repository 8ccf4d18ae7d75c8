"""Claims about the strip of slots: a sign for each slot of the pass, and what W, N and G add."""

from collections.abc import Mapping
from itertools import product

import msgspec
import pytest

from ladechat.protocol import Step, Value
from ladechat.widgets.panels.slot_strip import FREE, LESS, MORE, SHARED, SLOT, Sizes, SlotStrip, what_is_added
from ladechat.widgets.steps.draft_tree import slots_of
from tests.widgets.hosting import drawn, hosted, lines
from tests.widgets.sample_steps import candidate, pool_view, step, timing, window_view

SIZES = Sizes(5, 3, 5)


def pass_of(rows: list[list[str]], guesses: list[list[str]]) -> Step:
    """A pass whose draft tree holds the window and these guesses, merged."""
    cells = [[row[column] for row in rows] for column in range(len(rows[0]))]
    chain = rows[0][1:]
    paths = [chain, *(chain[:column] + cells[column][1:] for column in range(len(cells)))]
    tried = [candidate(pieces, "prompt") for pieces in guesses]
    tree = pool_view(rows[0][0], [*(candidate(path, "window") for path in paths if path), *tried])
    whole = step(["x"], window=window_view(rows, ["f"] * len(rows[0])), pool=tree)
    slots = timing(len(slots_of(whole)))
    return msgspec.structs.replace(whole, pool=pool_view(rows[0][0], tried), timing=slots)


def shown(now: Sizes | None = SIZES, moved: Sizes | None = None, of: Step | None = None) -> SlotStrip:
    strip = SlotStrip()
    strip.show_sizes(now, moved or now)
    if of is not None:
        strip.show_step(of)
    return strip


def counted(strip: SlotStrip) -> Mapping[str, int]:
    assert strip.sizes is not None
    signs = [sign for part in strip.parts(*strip.sizes)[0] for _, drawn in part.drawn for sign in drawn]
    return {sign: signs.count(sign) for sign in (SLOT, SHARED, FREE, MORE, LESS)}


def total(strip: SlotStrip) -> str:
    assert strip.sizes is not None
    return strip.parts(*strip.sizes)[1]


@pytest.mark.parametrize("sizes", [Sizes(*each) for each in product((1, 2, 5, 15), (2, 3, 5), (0, 1, 15))])
def test_the_formula_is_the_sum_of_the_parts_and_one_more_adds_what_is_said(sizes: Sizes) -> None:
    window, ngram, guesses = sizes
    assert sizes.most == (ngram - 1) * (window + guesses)
    added = {
        "W": sizes._replace(window=window + 1).most - sizes.most,
        "N": sizes._replace(ngram=ngram + 1).most - sizes.most,
        "G": sizes._replace(guesses=guesses + 1).most - sizes.most,
    }
    text = what_is_added(sizes)[0]
    for name, more in added.items():
        assert f"{name} + 1: + {more} " in text
    assert f"(N − 1)(W + G) = {sizes.most} " in text


def test_every_slot_of_a_pass_is_a_sign_and_what_shares_one_is_marked() -> None:
    rows = [["a", "b", "c"], ["d", "e", "f"]]
    apart = pass_of(rows, [["x", "y"]])
    assert counted(shown(Sizes(3, 3, 2), of=apart)) == {SLOT: 8, SHARED: 0, FREE: 2, MORE: 0, LESS: 0}
    alike = pass_of(rows, [["x", "y"], ["x", "z"]])
    strip = shown(Sizes(3, 3, 2), of=alike)
    assert counted(strip) == {SLOT: 9, SHARED: 1, FREE: 0, MORE: 0, LESS: 0}
    assert alike.timing.slots == 9 and total(strip) == "9/10 slots"
    like_the_window = pass_of(rows, [["b", "c"]])
    assert counted(shown(Sizes(3, 3, 1), of=like_the_window))[SHARED] == 2


def test_a_slider_that_moves_shows_what_is_added_before_it_has_settled() -> None:
    assert counted(shown(SIZES, SIZES._replace(window=6)))[MORE] == 2
    assert counted(shown(SIZES, SIZES._replace(ngram=4)))[MORE] == 10
    assert counted(shown(SIZES, SIZES._replace(guesses=3))) == {SLOT: 16, SHARED: 0, FREE: 0, MORE: 0, LESS: 4}
    assert total(shown(SIZES, SIZES._replace(ngram=4))) == "20 → 30 slots"


def test_a_pass_with_other_sizes_is_not_measured_by_those_that_follow() -> None:
    """After G was moved to 0 it said "guesses 17/10"."""
    strip = shown(Sizes(3, 3, 2), of=pass_of([["a", "b", "c"], ["d", "e", "f"]], [["x", "y"], ["v", "w"]]))
    strip.of_pass = Sizes(3, 3, 2)
    assert total(strip) == "10/10 slots"
    strip.show_sizes(Sizes(3, 3, 0), Sizes(3, 3, 0))
    assert total(strip) == "≤ 6 slots" and counted(strip)[SLOT] == 6


async def test_the_number_of_slots_stands_before_the_parts_and_a_part_without_any_has_no_name() -> None:
    """It stood behind the word for the guesses, which it is not the number of."""
    async with hosted(shown(Sizes(3, 3, 0)), 60, 2) as (_, strip):
        assert lines(strip)[0].split() == ["≤", "6", "slots", SLOT, "last", SLOT * 5, "window"]


def test_another_decoder_has_none() -> None:
    assert Sizes.of({"nodes": 16}) is None and Sizes.of({"window": 5, "ngram": 3}) is None
    given: Mapping[str, Value] = {"window": 5, "ngram": 3, "guesses": 0, "pool_prompt": True}
    assert Sizes.of(given) == (5, 3, 0)
    strip = SlotStrip()
    strip.show_sizes(None, None)
    assert strip.rows(50, 2) == [] and strip.explain() == ""


@pytest.mark.parametrize("width", [30, 36, 46, 80, 120])
@pytest.mark.parametrize("sizes", [Sizes(1, 2, 0), SIZES, Sizes(15, 5, 15), Sizes(64, 16, 64)])
async def test_it_fits_any_room_and_every_sign_is_one_slot(sizes: Sizes, width: int) -> None:
    async with hosted(shown(sizes), width, 2) as (pilot, strip):
        text = lines(strip)[0]
        assert text.startswith(f"≤ {sizes.most} slots")
        assert text.count(SLOT) in (0, sizes.most)
        if SLOT not in text and width >= 46:
            _, window, guesses = sizes.parts
            assert text == f"≤ {sizes.most} slots: 1 last · {window} window · {guesses} pool"
        strip.show_sizes(sizes, sizes._replace(window=sizes.window + 1))
        await drawn(pilot, strip)


async def test_more_slots_than_fit_are_numbers_that_add_up() -> None:
    """It said "15/30 slots (▮=2)", with "last", one slot, as a sign, and 8 signs for 15."""
    sizes, rows = Sizes(5, 4, 5), [[f"{row}{column}" for column in range(5)] for row in range(3)]
    async with hosted(shown(sizes, of=pass_of(rows, [["x", "y", "z"]])), 54, 2) as (pilot, strip):
        assert lines(strip)[0] == "18/30 slots: 1 last · 14 window · 3/15 pool"
        strip.show_sizes(sizes, Sizes(7, 4, 2))
        assert (await drawn(pilot, strip))[0] == "30 → 27 slots: 1 last · 14 → 20 window · 15 → 6 pool"


async def test_the_sign_of_shared_slots_is_explained_where_there_are_any_else_the_most_slots_are_said() -> None:
    rows = [["a", "b", "c"], ["d", "e", "f"]]
    for guesses, said in (([["x", "y"]], "≤ (N−1)(W+G) = 10"), ([["x", "y"], ["x", "z"]], f"{SHARED} shares a slot")):
        async with hosted(shown(Sizes(3, 3, 2), of=pass_of(rows, guesses)), 54, 2) as (_, strip):
            assert lines(strip)[1].endswith(said)
            assert (SHARED in lines(strip)[0]) == (SHARED in lines(strip)[1])
