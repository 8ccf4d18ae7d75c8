"""Claims about the panel of the Jacobi window."""

import pytest
from rich.cells import cell_len

from ladechat.palette import Palette
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


async def test_a_column_of_the_window_is_called_what_it_looks_like() -> None:
    async with hosted(four_gram_step(), 60, 8) as (pilot, panel):
        assert lines(panel)[6].startswith("read ↘: an n-gram of the window")
        assert "runs slanted here (↘)" in panel.explain() and "N = 4 tokens" in panel.explain()
        panel.styles.width = 40
        await until(lambda: panel.content_size.width == 40, pilot)
        assert lines(panel)[6].split("  ")[0] == "read ↘: an n-gram"
        panel.styles.width = 30
        await until(lambda: panel.content_size.width == 30, pilot)
        assert lines(panel)[6] == "read ↓: an n-gram" and "is read downwards (↓)" in panel.explain()


async def test_the_block_of_jacobi_decoding_has_the_w_of_its_slider_and_no_n_grams() -> None:
    block = window_view([["the", " pool", " holds"]], [" pool", " keeps", " all"])
    async with hosted(showing(WindowPanel(), step([" pool"], index=2, window=block)), 60, 6) as (_, panel):
        shown = lines(panel)
        assert shown[0].endswith(" W 2") and "n-gram" not in " ".join(shown)
        assert panel.explain().startswith("A block of W = 2 guesses") and "1 of its 2 guesses" in panel.explain()


async def test_a_block_that_the_limit_of_the_answer_cuts_keeps_the_w_that_was_set() -> None:
    panel = WindowPanel()
    panel.width_set = 5
    for rows, fresh, left in ((["the", " pool"], [" pool", " keeps"], 1), (["the"], [" pool"], 0)):
        panel.show_step(step([" pool"], index=2, window=window_view([rows], fresh)))
        async with Host(panel, 60, 6).run_test():
            assert lines(panel)[0].endswith(f" W 5, cut to {left}")
            assert panel.explain().startswith(f"A block of W = 5 guesses after the last token, cut to {left} ")


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


async def test_accepted_tokens_are_traced_to_the_column_that_they_were() -> None:
    panel = four_gram_step()
    drafted = pool_view(" pool", [candidate([" holds", " n", "-grams"], "window", 2)])
    async with Host(panel, 60, 8).run_test() as pilot:
        assert not any("later" in line for line in lines(panel))
        view = window_view([[" pool", "x"], ["y", "z"], ["y", "z"]], ["y", "z"])
        panel.show_step(step([" holds", " n", " of"], index=6, window=view, pool=drafted))
        assert (await drawn(pilot, panel))[-1] == "‹·holds ·n› guessed at +1, accepted 2 passes later"
        panel.show_step(step([" other"], index=7, window=view))
        assert (await drawn(pilot, panel))[-1].endswith("2 passes later"), "it counts from the guess, not from now"
        path = pool_view(" pool", [candidate([" was"], "window", 1)])
        panel.show_step(step([" was", " in"], index=8, window=view, pool=path))
        assert not any("later" in line for line in await drawn(pilot, panel)), "of the latest one, no column is known"
        panel.stay_at(step([" pool"], index=5, window=view), 8)
        assert not any("later" in line for line in await drawn(pilot, panel)), "at an earlier pass it is not yet so"
        elsewhere = pool_view(" pool", [candidate([" holds", " n", "-grams"], "prompt", 2)])
        panel.clear()
        panel.show_step(step([" holds", " n", " of"], index=8, window=view, pool=elsewhere))
        assert not any("later" in line for line in await drawn(pilot, panel)), "what the prompt had is not the window's"


async def test_tokens_that_stood_where_the_step_put_them_wear_its_style() -> None:
    async with hosted(four_gram_step(), 40, 8) as (_, panel):
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
        monkeypatch.setattr(panel, "refresh", lambda: painted.append("a frame"))
        for each in answer(3, 4):
            panel.show_step(each)
        panel.show_step(step([" pool"], window=window_view([["last"]], ["one"])))
        assert len(painted) <= 1
        await until(lambda: len(painted) == 2, pilot)
        monkeypatch.undo()
        panel.refresh()
        assert "last" in lines(panel)[2]
