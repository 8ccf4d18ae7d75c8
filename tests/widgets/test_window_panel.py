"""Claims about the panel of the Jacobi window."""

import pytest
from rich.cells import cell_len

from ladechat.palette import Palette
from ladechat.widgets.lessons import LessonPanels
from ladechat.widgets.panels.mask_panel import MaskPanel
from ladechat.widgets.panels.pool_panel import PoolPanel
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.panels.window_panel import WindowPanel
from tests.waiting import until
from tests.widgets.hosting import Host, drawn, hosted, lines, showing, style_of
from tests.widgets.sample_steps import answer, candidate, plain_step, pool_view, step, window_view

ROWS = [["the", " pool", " keeps"], [" pool", " holds", " n"], [" keeps", " n", "-grams"]]
FRESH = [" n", "-grams", " of"]


def four_gram_step() -> WindowPanel:
    panel = WindowPanel()
    panel.show_step(step([" pool", " keeps", " all"], index=4, window=window_view(ROWS, FRESH)))
    return panel


async def test_columns_are_positions_and_ngrams_read_down_the_stairs() -> None:
    async with hosted(four_gram_step(), 60, 8) as (_, panel):
        shown = lines(panel)
        assert shown[0].split() == ["Jacobi", "window", "W", "3", "·", "N", "4"]
        at = {word: shown[1].index(word) for word in shown[1].split()}
        assert list(at) == ["at", "+0", "+1", "+2", "+3", "+4", "+5"]
        for line, (label, start, tokens) in zip(
            shown[2:6],
            [
                ("−3", 0, ["the", "·pool", "·keeps"]),
                ("−2", 1, ["·pool", "·holds", "·n"]),
                ("−1", 2, ["·keeps", "·n", "-grams"]),
                ("new", 3, ["·n", "-grams", "·of"]),
            ],
            strict=True,
        ):
            assert line.split()[0] == label
            for column, token in enumerate(tokens):
                assert line[at[f"+{start + column}"] :].startswith(token)


async def test_a_diagonal_of_the_window_is_described_as_it_looks() -> None:
    async with hosted(four_gram_step(), 60, 8) as (pilot, panel):
        assert lines(panel)[6].startswith("along ↘: an n-gram · = as in a row above")
        assert "A diagonal ↘ from the top row" in panel.explain() and "N = 4 tokens" in panel.explain()
        panel.styles.width = 40
        await until(lambda: panel.content_size.width == 40, pilot)
        assert lines(panel)[6].split("  ")[0] == "along ↘: an n-gram"
        panel.styles.width = 30
        await until(lambda: panel.content_size.width == 30, pilot)
        assert lines(panel)[6] == "along ↓: an n-gram" and "A diagonal ↓ from the top" in panel.explain()


async def test_colours_are_explained_only_where_there_are_any() -> None:
    async with hosted(four_gram_step(), 80, 8) as (pilot, panel):
        assert "coloured: the right token" in lines(panel)[6]
        panel.palette = Palette(colour=False)
        assert "marked: the right token" in (await drawn(pilot, panel))[6]
        panel.show_step(step([" zzz"], index=5, window=window_view(ROWS, FRESH)))
        assert "coloured" not in (await drawn(pilot, panel))[6]


async def test_the_block_of_jacobi_decoding_has_the_w_of_its_slider_and_no_n_grams() -> None:
    block = window_view([["the", " pool", " holds"]], [" pool", " keeps", " all"])
    async with hosted(showing(WindowPanel(), step([" pool"], index=2, window=block)), 60, 6) as (_, panel):
        shown = lines(panel)
        assert shown[0].endswith(" W 2") and "n-gram" not in " ".join(shown)
        assert panel.explain().startswith("W = 2 guesses") and "1 of its 2 guesses was the right" in panel.explain()


async def test_a_block_that_the_limit_of_the_answer_cuts_keeps_the_w_that_was_set() -> None:
    panel = WindowPanel()
    panel.width_set = 5
    for rows, fresh, left in ((["the", " pool"], [" pool", " keeps"], 1), (["the"], [" pool"], 0)):
        panel.show_step(step([" pool"], index=2, window=window_view([rows], fresh)))
        async with Host(panel, 60, 6).run_test():
            assert lines(panel)[0].endswith(f" W 5, cut to {left}")
            assert panel.explain().startswith(f"W = 5 guesses after the last token, cut to {left} ")


async def test_a_token_that_the_pass_before_had_at_its_position_is_marked_as_fixed() -> None:
    async with hosted(four_gram_step(), 60, 8) as (_, panel):
        marked = [token for line in lines(panel)[2:6] for token in line.split() if token.startswith("=")]
        assert marked == ["=·pool", "=·n", "=·n", "=-grams"]


async def test_in_a_narrow_panel_columns_stand_upright_under_the_position_where_they_begin() -> None:
    async with hosted(four_gram_step(), 30, 8) as (_, panel):
        shown = [line.split() for line in lines(panel)[1:6]]
        assert shown == [
            ["from", "+0", "+1", "+2"],
            ["−3", "the", "·pool", "·keeps"],
            ["−2", "·pool", "·holds", "·n"],
            ["−1", "·keeps", "·n", "-grams"],
            ["new", "·n", "-grams", "·of"],
        ]


async def test_accepted_tokens_are_traced_to_the_diagonal_that_they_were() -> None:
    panel = four_gram_step()
    drafted = pool_view(" pool", [candidate([" holds", " n", "-grams"], "window", 2)])
    async with Host(panel, 60, 8).run_test() as pilot:
        assert not any("accepted" in line for line in lines(panel))
        view = window_view([[" pool", "x"], ["y", "z"], ["y", "z"]], ["y", "z"])
        panel.show_step(step([" holds", " n", " of"], index=6, window=view, pool=drafted))
        assert (await drawn(pilot, panel))[-1] == "‹·holds ·n› guessed in pass 5 at +2, accepted now"
        panel.show_step(step([" other"], index=7, window=view))
        assert (await drawn(pilot, panel))[-1].endswith("in pass 5 at +2, accepted in 7"), "which is not the one shown"
        path = pool_view(" pool", [candidate([" was"], "window", 1)])
        panel.show_step(step([" was", " in"], index=8, window=view, pool=path))
        assert not any("accepted" in line for line in await drawn(pilot, panel)), (
            "of the latest one, no column is known"
        )
        panel.stay_at(step([" pool"], index=5, window=view), 8)
        assert not any("accepted" in line for line in await drawn(pilot, panel)), "at an earlier pass it is not yet so"
        elsewhere = pool_view(" pool", [candidate([" holds", " n", "-grams"], "prompt", 2)])
        panel.clear()
        panel.show_step(step([" holds", " n", " of"], index=8, window=view, pool=elsewhere))
        assert not any("accepted" in line for line in await drawn(pilot, panel)), (
            "what the prompt had is not the window's"
        )


async def test_tokens_that_stood_where_the_step_put_them_wear_its_style() -> None:
    async with hosted(four_gram_step(), 60, 8) as (_, panel):
        marked = Palette().style_of_step(4, 3)
        plain = style_of(panel, "the")
        for word, line in [("pool", 2), ("keeps", 2), ("pool", 3), ("keeps", 4)]:
            style = style_of(panel, word, line)
            assert (style.color, style.underline, style.reverse) != (plain.color, plain.underline, plain.reverse)
            assert marked.color is None or style.color == marked.color
        assert style_of(panel, "holds", 3).color != style_of(panel, "pool", 3).color, "a wrong guess is not marked"
        assert style_of(panel, "n", 3).color == style_of(panel, "holds", 3).color, "nor one beyond the step"


async def test_older_rows_step_back() -> None:
    async with hosted(four_gram_step(), 40, 8) as (_, panel):
        shades = [style_of(panel, word).color for word in ("the", "holds", "-grams")]
        assert len(set(shades)) == 3


async def test_columns_that_do_not_fit_are_counted() -> None:
    async with hosted(showing(WindowPanel(), answer(15, 5)[0]), 40, 10) as (pilot, panel):
        assert "+10 columns" in lines(panel)[-3]
        assert lines(panel)[1].split() == ["from", "+0", "+1", "+2", "+3", "+4"]
        panel.styles.height = 6
        panel.styles.width = 34
        await until(lambda: panel.content_size.height == 6, pilot)
        assert "+11 columns" in lines(panel)[0], "where there is no line for the legend, the header says it"


async def test_when_short_the_newest_rows_are_shown_and_the_cut_is_marked() -> None:
    async with hosted(showing(WindowPanel(), answer(4, 9)[2]), 40, 5) as (_, panel):
        labels = [line.split()[0] for line in lines(panel)[1:]]
        assert labels == ["…−3", "−2", "−1", "new"]


@pytest.mark.parametrize("size", [(28, 4), (28, 6), (44, 10), (70, 20), (10, 2), (3, 1)])
@pytest.mark.parametrize("settings", [(7, 5), (1, 2), (15, 2), (64, 16), (1, 16)])
async def test_any_window_fits_any_size(size: tuple[int, int], settings: tuple[int, int]) -> None:
    async with hosted(showing(WindowPanel(), answer(*settings)[3]), *size) as (_, panel):
        shown = lines(panel)
        if size[0] >= 28:
            assert shown[0].endswith(f"W {settings[0]} · N {settings[1]}") or "column" in shown[0]
            assert any(line.split()[:1] == ["new"] for line in shown)


@pytest.mark.parametrize("odd", ["日本語の文", "👩\u200d🚀", "e\u0301te\u0301", "\x1b[31m", "", "\n    ", "\ufffd"])
async def test_odd_tokens_leave_the_columns_where_they_are(odd: str) -> None:
    panel = showing(WindowPanel(), step(["x"], window=window_view([[odd, "mark"], ["a", "mark"]], [odd, "mark"])))
    async with Host(panel, 28, 5).run_test():
        assert len({cell_len(line[: line.index("mark")]) for line in lines(panel)[2:5]}) == 1


async def test_without_a_window_a_sentence_says_so() -> None:
    async with hosted(WindowPanel(), 28, 4) as (pilot, panel):
        assert lines(panel)[1] == "Fills with the first pass."
        panel.show_step(plain_step())
        assert (await drawn(pilot, panel))[1] == "Plain decoding: no window."
        panel.clear()
        assert (await drawn(pilot, panel))[1] == "Fills with the first pass."


async def test_a_burst_of_steps_is_painted_a_few_times_and_ends_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hosted(WindowPanel(), 40, 8) as (pilot, panel):
        await pilot.pause()
        painted: list[str] = []
        monkeypatch.setattr(panel, "refresh", lambda **_: painted.append("a frame"))
        for each in answer(3, 4):
            panel.show_step(each)
        panel.show_step(step([" pool"], window=window_view([["last"]], ["one"])))
        assert len(painted) <= 1
        await until(lambda: len(painted) == 2, pilot)
        monkeypatch.undo()
        panel.refresh()
        assert "last" in lines(panel)[2]


WHOLE = step(
    [" pool", " keeps", "."],
    index=4,
    window=window_view(ROWS, FRESH),
    pool=pool_view(
        "the",
        [
            candidate([" pool", " keeps"], "window", 2),
            candidate([" pool", " holds", "-grams"], "window", 1),
            candidate([" pool", " keeps", " n"], "window", 2),
            candidate([" pool", " keeps", " n", "-grams"], "window", 2),
        ],
    ),
)
"""The last token, and the nodes of the window below it: +1 pool; +2 keeps and holds; n, and -grams twice."""


async def test_each_cell_has_its_verdict_and_each_draft_is_counted_once() -> None:
    """A cell that shares its slot with another is marked "=" in addition to its verdict, not instead of it."""
    async with hosted(showing(WindowPanel(), WHOLE), 60, 8) as (_, panel):
        shown = [line.split()[1:] for line in lines(panel)[2:6]]
        assert shown == [
            ["the", "✓·pool", "✓·keeps"],
            ["✓=·pool", "✗·holds", "✗·n"],
            ["✓=·keeps", "=·n", "–-grams"],
            ["=·n", "=-grams", "·of"],
        ]
        assert WHOLE.draft is not None
        marks = "".join(cell[0] for row in shown[:3] for cell in row if "=" not in cell)
        assert sum(marks.count(mark) for mark in "✓✗–") == len(WHOLE.draft.verdicts) - 1, (
            "-grams after holds is no cell"
        )


async def test_a_marked_diagonal_is_inverse_from_the_oldest_row_to_the_fresh_one_and_the_rest_is_quiet() -> None:
    async with hosted(showing(WindowPanel(), WHOLE), 60, 9) as (pilot, panel):
        panel.diagonal = 1
        shown = await drawn(pilot, panel)
        for line, word in zip(range(2, 6), ("pool", "holds", "n", "-grams"), strict=True):
            assert style_of(panel, word, line).reverse
        assert not style_of(panel, "keeps", 2).reverse
        assert style_of(panel, "keeps", 2).color == panel.muted.color
        assert shown[6].index("↓") == shown[5].index("-grams"), "it drops out of the fresh row"


@pytest.mark.parametrize("width", [30, 44, 60])
@pytest.mark.parametrize("diagonal", [0, 7, 14])
async def test_where_columns_are_cut_the_marked_ones_stay(width: int, diagonal: int) -> None:
    shown = answer(15, 4)[2]
    assert shown.window is not None
    async with hosted(showing(WindowPanel(), shown), width, 9) as (_, panel):
        panel.diagonal = diagonal
        inverse = [
            "".join(segment.text for segment in strip if segment.style and segment.style.reverse)
            for strip in panel.render_lines(panel.size.region)
        ]
        assert sum(bool(text) for text in inverse) == 4


async def test_columns_that_do_not_fit_are_counted_beside_a_marked_diagonal_too() -> None:
    """Of five diagonals four were seen, and nothing said so."""
    async with hosted(showing(WindowPanel(), answer(15, 5)[0]), 40, 12) as (pilot, panel):
        assert sum("+10 columns" in line for line in lines(panel)) == 1
        panel.diagonal = 1
        assert "+10 columns" in (await drawn(pilot, panel))[0]


async def test_a_mark_is_apart_from_the_token_before_it() -> None:
    """A verdict in the gap between two cells looked like a dash: "·decod–·the"."""
    long = window_view(
        [["the", " decoding", " keeping"], [" poolside", " holdings", " n"]], [" nothing", "-grams", " of"]
    )
    known = [candidate([" decoding", " keeping"], "window"), candidate([" decoding", " holdings"], "window")]
    panel = showing(WindowPanel(), step([" so"], window=long, pool=pool_view("the", known)))
    async with hosted(panel, 40, 8) as (_, panel):
        text = lines(panel)
        before = [line[place - 1] for line in text[2:4] for place, sign in enumerate(line) if sign in "–="]
        assert before and set(before) <= set(" ✓✗–")
        assert any("…" in line for line in text[2:4]), "though they are cut"


@pytest.mark.parametrize("wanted", ["window", "mask"])
async def test_what_a_slot_sees_is_said_once_where_the_mask_says_it_too(wanted: str) -> None:
    side = LessonPanels({})
    async with Host(side, 60, 50).run_test(size=(80, 50)) as pilot:
        side.show_steps([WHOLE])
        side.show_panel(wanted, ())
        side.point_at(slot=2)
        await pilot.pause()
        shown = [panel for panel in (side.query_one(WindowPanel), side.query_one(MaskPanel)) if panel.display]
        assert len(shown) == 1 + (wanted == "mask")
        text = [line for panel in shown for line in await drawn(pilot, panel)]
        assert sum(" sees the text" in line for line in text) == 1


def marked(window: WindowPanel) -> tuple[int | None, int | None]:
    return window.diagonal, window.slot


@pytest.mark.parametrize("width", [30, 60, 78])
async def test_a_click_marks_a_diagonal_a_second_one_what_its_slot_sees_a_third_nothing(width: int) -> None:
    async with hosted(SidePanels(), width, 40) as (pilot, side):
        side.show_steps([WHOLE])
        window = side.query_one(WindowPanel)
        await drawn(pilot, window)
        line = next(y for y, text in enumerate(lines(window)) if text.lstrip().startswith("−2"))
        place = (lines(window)[line].index("holds"), line)
        await pilot.click(window, offset=place)
        assert (window.diagonal, window.slot) == (1, None)
        assert side.query_one(PoolPanel).diagonal == 1
        await pilot.click(window, offset=place)
        assert WHOLE.draft is not None and window.slot is not None
        assert (window.diagonal, WHOLE.draft.pieces[window.slot - 1]) == (None, " holds")
        assert side.query_one(MaskPanel).slot == window.slot
        await pilot.click(window, offset=place)
        assert marked(window) == (None, None)


async def test_keys_go_from_diagonal_to_diagonal_and_from_slot_to_slot() -> None:
    async with hosted(SidePanels(), 60, 40) as (pilot, side):
        side.show_steps([WHOLE])
        window = side.query_one(WindowPanel)
        window.focus()
        for key, diagonal in (("right", 0), ("right", 1), ("left", 0), ("left", 2)):
            await pilot.press(key)
            assert window.diagonal == diagonal
        await pilot.press("enter")
        first = window.slot
        assert first is not None and window.diagonal is None
        await pilot.press("right")
        assert window.slot != first
        side.clear()
        assert marked(window) == (None, None), "another answer has other cells"


async def test_what_a_slot_sees_is_lit_and_said() -> None:
    async with hosted(showing(WindowPanel(), WHOLE), 70, 9) as (pilot, panel):
        assert WHOLE.draft is not None
        panel.slot = 1 + WHOLE.draft.pieces.index(" holds")
        shown = await drawn(pilot, panel)
        assert style_of(panel, "holds", 3).reverse
        assert style_of(panel, "the", 2).bold and style_of(panel, "pool", 2).bold
        assert not style_of(panel, "keeps", 2).bold
        assert shown[6].startswith("‹·holds› (row −2, +2) sees the text, ‹the› ‹·pool› and itself")
