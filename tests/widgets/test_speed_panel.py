"""Claims about the speed panel: every figure is a sum over events."""

import msgspec
import pytest

from ladechat.lessons.scene import ONE_BY_ONE, Run, measured
from ladechat.palette import Palette
from ladechat.protocol import PassCost, Step
from ladechat.widgets.cells import BLOCKS
from ladechat.widgets.formatting import division, gain
from ladechat.widgets.panels.speed_panel import CARRIED, SpeedPanel
from tests.widgets.hosting import Host, drawn, hosted, lines, showing, style_of
from tests.widgets.sample_steps import (
    answer,
    candidate,
    draft_tree,
    finished,
    lens_view,
    plain_step,
    pool_view,
    step,
    timing,
    window_view,
)


def look_ahead(tokens: int, step_ms: float, plain_ms: float | None = 10.0, index: int = 0, ngram: int = 5) -> Step:
    return step(
        ["x"] * tokens,
        index=index,
        window=window_view([["a"]] * (ngram - 1), ["b"]),
        pool=pool_view("a", []),
        time=timing(15, step_ms=step_ms, plain_ms=plain_ms),
    )


def shown(*steps: Step) -> SpeedPanel:
    panel = SpeedPanel()
    for each in steps:
        panel.show_step(each)
    return panel


async def test_the_figures_are_those_of_the_steps() -> None:
    async with hosted(shown(look_ahead(3, 20), look_ahead(1, 12), look_ahead(2, 16)), 50, 8) as (_, panel):
        text = lines(panel)
        # 6 tokens in 48 ms; a plain pass takes 10 ms, so 60 ms for the same.
        assert " ".join(text[0].split()) == "speed · tokens ↑ time → 3 passes instead of 6"
        assert text[1] == "2.00 tokens a pass   125 tok/s"
        assert text[-2] == "2.00 tokens a pass ÷ cost 1.60 ≈ 1.2× plain"
        assert text[-1] == "15 slots · mean pass 16.0 ms, plain 10.0 ms"


def test_tokens_per_second_are_those_of_the_last_two_seconds_and_at_the_end_of_the_whole_answer() -> None:
    steps = [*[look_ahead(1, 100)] * 50, *[look_ahead(4, 100)] * 10]
    panel = shown(*steps[:50])
    assert panel.tokens_per_second == pytest.approx(10)
    for each in steps[50:]:
        panel.show_step(each)
    assert panel.tokens_per_second == pytest.approx((10 * 4 + 10 * 1) / 2.0)
    assert panel.measured and panel.measured[1] == pytest.approx((50 + 40) / 60), "that one is of the whole answer"
    panel.show_finished(finished(steps))
    assert panel.tokens_per_second == pytest.approx((50 + 40) / 6)
    assert shown(look_ahead(2, 8000)).tokens_per_second == pytest.approx(0.25), "one slow step is a reading too"


async def test_no_estimate_is_above_the_tokens_a_pass_for_no_pass_is_cheaper_than_a_plain_one() -> None:
    steps = [look_ahead(2, 10, plain_ms=11)] * 4
    async with hosted(shown(*steps), 60, 10) as (_, panel):
        assert panel.measured == (2.0, 2.0)
        panel.show_finished(finished(steps, estimated_speedup=2.2))
        assert panel.verdict()[-1] == "2.00 ÷ 1.00 ≈ 2.0×"


@pytest.mark.parametrize("estimated", [None, 1.9])
async def test_no_cost_is_shown_that_the_chart_of_costs_contradicts(estimated: float | None) -> None:
    steps = [look_ahead(2, 11)] * 4
    panel = shown(*steps)
    if estimated is not None:
        panel.show_finished(finished(steps, estimated_speedup=estimated))
    async with hosted(panel, 60, 10) as (pilot, panel):
        assert "2.00 ÷ cost 1." in panel.verdict()[4]
        panel.costs = [PassCost(slots=1, ms=10.0), PassCost(slots=15, ms=20.0)]
        await pilot.pause()
        text = "\n".join(lines(panel))
        assert "times disagree" in text
        assert not any(time in text for time in ("≈", " ms", "tok/s"))


@pytest.mark.parametrize("estimated", [None, 3.2])
async def test_where_plain_passes_took_longer_than_wide_ones_the_machine_was_busy_and_no_time_is_shown(
    estimated: float | None,
) -> None:
    steps = [look_ahead(2, 5, plain_ms=8)] * 4
    panel = shown(*steps)
    if estimated is not None:
        panel.show_finished(finished(steps, estimated_speedup=estimated))
    async with hosted(panel, 60, 10) as (_, panel):
        text = "\n".join(lines(panel))
        assert "times disagree, as on a busy machine: none shown" in text
        assert not any(time in text for time in ("≈", " ms", "tok/s")) and "fast" not in panel.explain()
        assert "2.00 tokens a pass" in text and panel.advice() == []


async def test_while_passes_come_one_by_one_nothing_is_said_about_times() -> None:
    async with hosted(shown(look_ahead(2, 50, plain_ms=8)), 60, 12) as (pilot, panel):
        assert "tok/s" in lines(panel)[1] and panel.advice()
        panel.untimed = None
        await pilot.pause()
        text = "\n".join(lines(panel))
        assert not any(unit in text for unit in ("tok/s", "×", " ms"))
        assert "one by one: no times" in text and not panel.advice()


async def test_of_the_passes_only_those_that_came_one_by_one_are_left_out_of_the_times() -> None:
    """After a slow beginning it said "slow motion: no times" of the whole answer."""
    slow, fast = [look_ahead(1, 90)] * 3, [look_ahead(3, 20)] * 3
    panel = shown(*slow, *fast)
    panel.untimed = 3
    async with hosted(panel, 60, 12) as (_, panel):
        assert panel.verdict()[1] == "2.00 tokens a pass ÷ cost 2.00 ≈ 1.0× plain decoding"
        assert lines(panel)[1] == "2.00 tokens a pass   150 tok/s" and widths(panel) == [1, 1, 1, 2, 2, 2]
        panel.show_finished(finished([*slow, *fast], estimated_speedup=0.3))
        assert panel.verdict()[-1] == "2.00 ÷ 2.00 ≈ 1.0×", "the engine's estimate counts all passes"
        panel.untimed = 6
        assert panel.verdict() == ["one by one: no times"]


@pytest.mark.parametrize("tokens", range(1, 60, 7))
@pytest.mark.parametrize("cost", [1.04, 1.54, 2.37, 3.26, 5.95, 11.06, 64.0])
def test_who_divides_what_is_shown_finds_what_is_shown(tokens: int, cost: float) -> None:
    """It said "1.45 ÷ 1.5 = 0.9×", which is 0.97."""
    divided, divisor, speed = division(tokens / 20, tokens / 20 / cost)
    assert abs(float(divided) / float(divisor) - float(speed)) <= 0.0501
    assert gain(tokens / 20, tokens / 20 / cost)[-1] == f"{divided} ÷ {divisor} ≈ {speed}×"


async def test_the_milliseconds_of_short_passes_divide_to_the_cost_that_is_shown() -> None:
    """It said "mean pass 2.2 ms, plain 1.4 ms" beside a cost of 1.5."""
    async with hosted(shown(look_ahead(2, 2.16, plain_ms=1.4)), 60, 8) as (_, panel):
        assert "cost 1.54" in lines(panel)[-2] and lines(panel)[-1].endswith("mean pass 2.16 ms, plain 1.40 ms")


@pytest.mark.parametrize("untimed", [0, 1])
async def test_after_the_answer_no_single_pass_stands_for_all(untimed: int) -> None:
    """It said "this pass 1 slot" of the last one, beside panels that stay at another."""
    steps = [look_ahead(2, 20), look_ahead(2, 20), look_ahead(1, 20)]
    steps[-1] = msgspec.structs.replace(steps[-1], timing=timing(3, step_ms=20, plain_ms=10))
    panel = shown(*steps)
    panel.untimed = untimed
    panel.show_finished(finished(steps))
    async with hosted(panel, 60, 12) as (_, panel):
        text = "\n".join(lines(panel))
        assert "this pass" not in text
        assert ("mean pass 11 slots, 20.0 ms; plain 10.0 ms" in text) == bool(untimed)


async def test_where_slots_carry_pseudo_states_it_says_that_the_cost_that_is_shown_includes_them() -> None:
    """A pass of 2 slots cost 2.3 plain ones, where the table said 1.0, and nothing said why; then that they were
    uncounted, though the time of the pass includes them.
    """
    tree, lens = draft_tree([candidate(["a"], "hidden_transfer", 1)]), lens_view("a", [["b"]])
    carrying = msgspec.structs.replace(look_ahead(2, 41.5), draft=tree, window=None, pool=None, lens=lens)
    async with hosted(shown(carrying, carrying), 60, 12) as (pilot, panel):
        assert any("cost 4.15" in line for line in lines(panel)) and CARRIED in lines(panel)
        assert CARRIED in panel.explain()
        panel.untimed = None
        assert "one by one: no times" in await drawn(pilot, panel)
        assert CARRIED not in panel.explain(), "there is no cost to include them"


@pytest.mark.parametrize("ended", [False, True])
def test_a_card_and_the_panel_give_the_same_quotient(ended: bool) -> None:
    steps = [look_ahead(1 + index % 3, 15 + 3 * index, plain_ms=10 + index % 2, index=index) for index in range(12)]
    run = Run(1, steps=steps, paced=4, finished=finished(steps, estimated_speedup=1.7) if ended else None)
    panel = shown(*steps)
    panel.untimed = run.untimed
    if run.finished is not None:
        panel.show_finished(run.finished)
    assert panel.verdict()[-1] in measured(run).replace(" (the cost of a pass here, in plain ones)", "")
    run.paced = panel.untimed = None
    assert measured(run) == ONE_BY_ONE and panel.verdict() == ["one by one: no times"]


async def test_the_estimate_leaves_out_steps_without_a_measured_plain_pass() -> None:
    panel = shown(look_ahead(5, 10, plain_ms=None), look_ahead(2, 10, plain_ms=8))
    assert panel.measured == pytest.approx((2.8, 3.5)), "3.5 tokens a pass, ÷ 1.25"
    async with hosted(shown(look_ahead(5, 10, plain_ms=None)), 50, 8) as (_, never):
        assert never.measured is None
        assert "×" not in lines(never)[0]
        assert lines(never)[-1] == "pass of 15 slots · 10.0 ms"


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        ([look_ahead(1, 12)] * 2, "1.00 tokens a pass ÷ cost 1.20 ≈ 0.8× plain decoding"),
        ([look_ahead(2, 41.5)] * 2, "2.00 tokens a pass ÷ cost 4.15 ≈ 0.5× plain decoding"),
        ([look_ahead(3, 12)], "3.00 tokens a pass ÷ cost 1.20 ≈ 2.5× plain decoding"),
    ],
)
async def test_the_formula_of_the_gain_comes_after_the_passes_and_explains_it(steps: list[Step], verdict: str) -> None:
    async with hosted(shown(*steps), 60, 6) as (_, panel):
        text = lines(panel)
        assert "×" not in text[0] + text[1]
        assert verdict in text


@pytest.mark.parametrize(
    ("steps", "advice"),
    [
        ([look_ahead(1, 12)] * 2, "try a text that repeats or copies: more drafts are accepted"),
        ([look_ahead(2, 41.5)] * 2, "try smaller W, N and G: fewer slots, a cheaper pass"),
        ([msgspec.structs.replace(look_ahead(2, 41.5), window=None)], "on a GPU, more slots cost hardly more"),
        ([look_ahead(3, 12)], ""),
        ([plain_step()], ""),
    ],
)
async def test_without_a_gain_it_says_what_to_try_where_there_is_room(steps: list[Step], advice: str) -> None:
    async with hosted(shown(*steps), 60, 10) as (_, panel):
        assert panel.advice()[:1] == ([advice] if advice else [])
        assert not advice or advice in lines(panel)
    async with Host(low := shown(*steps), 60, 6).run_test():
        assert not advice or advice not in lines(low)


async def test_at_the_end_the_engines_estimate_decides_what_is_said() -> None:
    panel = shown(*[look_ahead(2, 41.5)] * 2)
    assert panel.advice() and "2.00 ÷ 4.15 ≈ 0.5" in panel.explain()
    panel.show_finished(finished([look_ahead(2, 41.5)] * 2, estimated_speedup=1.4))
    assert panel.advice() == [] and "2.00 ÷ 1.43 ≈ 1.4" in panel.explain()
    assert panel.verdict()[-1] == "2.00 ÷ 1.43 ≈ 1.4×"


async def test_one_bar_a_step_the_newest_at_the_right_up_to_n() -> None:
    panel = shown(look_ahead(1, 10), look_ahead(5, 10, index=1), look_ahead(3, 10, index=2))
    async with Host(panel, 40, 9).run_test():
        text = lines(panel)
        assert [line[:3].strip() for line in text[2:7]] == ["5", "", "", "", "1"]
        columns = ["".join(line.ljust(40)[x] for line in text[2:7]) for x in range(36, 40)]
        assert columns == [" " * 5, "    █", "█████", "  ███"]
        assert text[2].index("█") == 38


@pytest.mark.parametrize("height", range(6, 16))
@pytest.mark.parametrize("ngram", [2, 3, 5])
async def test_the_scale_says_1_at_the_line_in_which_a_bar_of_one_token_ends(height: int, ngram: int) -> None:
    """It said so at the foot, so that a bar of one token looked like 1.5."""
    async with hosted(shown(look_ahead(1, 10, ngram=ngram)), 40, height) as (_, panel):
        text = lines(panel)
        ends = next(line for line, words in enumerate(text) if words[-1:] in tuple(BLOCKS[1:]) and len(words) == 40)
        assert text[ends].split()[0] == "1"


def widths(panel: SpeedPanel, width: int = 60) -> list[int]:
    return [bar.cells for bar in panel._visible_bars(width)]


def test_a_bar_is_as_wide_as_its_pass_took_and_equal_widths_are_equal_times() -> None:
    assert widths(shown(look_ahead(1, 10), look_ahead(3, 30), look_ahead(2, 20))) == [1, 3, 2]
    each = widths(shown(*[look_ahead(2, 14)] * 10))
    assert sum(each) == 14 and set(each) == {1, 2}
    assert widths(shown(look_ahead(2, 10, plain_ms=None))) == [1]
    assert widths(shown(*[look_ahead(1, 2)] * 5)) == [1] * 5, "no pass is without a bar"


def test_where_no_times_count_all_bars_are_of_one_width() -> None:
    panel = shown(look_ahead(1, 10), look_ahead(3, 30))
    panel.untimed = None
    assert widths(panel) == [1, 1]


async def test_the_first_bar_that_is_seen_is_cut_to_fit_and_neighbours_differ_without_colour() -> None:
    panel = shown(*(look_ahead(2, 100, index=index) for index in range(4)))
    panel.palette = Palette(colour=False)
    async with hosted(panel, 28, 6) as (_, panel):
        assert widths(panel, 28) == [5, 10, 10]
        assert len({panel._style_of(bar).color for bar in panel._visible_bars(28)}) == 2


async def test_a_bar_has_the_colour_of_its_step() -> None:
    async with hosted(shown(look_ahead(5, 10, index=3)), 40, 8) as (_, panel):
        assert style_of(panel, "█").color == Palette().style_of_step(3, 5).color


async def test_more_steps_than_columns_show_the_latest() -> None:
    async with hosted(shown(*[look_ahead(1, 10)] * 60, look_ahead(5, 10)), 28, 4) as (_, panel):
        bars = lines(panel)[2]
        assert bars.startswith(" 5…"), "and that there are others"
        assert len(bars) == 28
        assert bars[-1] == "█"
        assert set(bars[3:-1]) <= set(BLOCKS[1:4])


async def test_the_end_of_an_answer_is_summed_up_and_the_last_reading_stays() -> None:
    steps = answer()
    async with hosted(shown(*steps), 50, 8) as (pilot, panel):
        before = lines(panel)
        panel.show_finished(finished(steps, estimated_speedup=1.7))
        after = await drawn(pilot, panel)
        assert after[1] == before[1]
        assert any(line.endswith("≈ 1.7× plain") for line in after)
        tokens = sum(len(each.token_ids) for each in steps)
        milliseconds = sum(each.timing.step_ms for each in steps)
        assert after[-1] == f"{tokens} tokens in {milliseconds:.0f} ms · prompt 310 ms"


async def test_clearing_begins_anew() -> None:
    async with hosted(shown(look_ahead(5, 10)), 40, 8) as (pilot, panel):
        panel.clear()
        assert (await drawn(pilot, panel))[1] == "Measured from the first pass on."
        panel.show_step(look_ahead(1, 10))
        assert panel.measured and panel.measured[1] == 1


async def test_plain_decoding_is_called_so_and_promises_nothing() -> None:
    async with hosted(shown(plain_step()), 50, 8) as (_, panel):
        assert lines(panel)[0].endswith("plain decoding")
        assert lines(panel)[-1].startswith("pass of 1 slot ·")
        assert panel.verdict() == []


async def test_of_a_plain_answer_at_its_end_the_slots_are_named_once() -> None:
    """It said "pass of 1 slot a pass"."""
    panel = shown(plain_step(), plain_step(index=1), plain_step(index=2))
    panel.untimed = 1
    panel.show_finished(finished([plain_step()] * 3))
    async with hosted(panel, 50, 8) as (_, panel):
        assert lines(panel)[-1] == "mean pass 1 slot"


async def test_where_plain_decoding_has_taken_over_the_figures_are_not_called_its_own() -> None:
    async with hosted(shown(look_ahead(3, 20), plain_step(index=1)), 50, 8) as (_, panel):
        assert lines(panel)[0].endswith("plain now · 2 passes for 4")
        assert lines(panel)[1].startswith("2.00 tokens a pass")


@pytest.mark.parametrize("size", [(28, 4), (28, 6), (44, 10), (70, 20), (10, 3), (3, 1)])
async def test_any_answer_fits_any_size(size: tuple[int, int]) -> None:
    async with hosted(shown(*answer(5, 16)), *size) as (_, panel):
        lines(panel)


@pytest.mark.parametrize(
    ("cached", "height", "shown"),
    [(120, 8, "context 122 of 1,024 tokens · 12 %"), (120, 5, None), (800, 5, "context 802 of 1,024 tokens · 78 %")],
)
async def test_how_full_the_context_is_stands_there_where_there_is_room_or_reason(
    cached: int, height: int, shown: str | None
) -> None:
    time = msgspec.structs.replace(timing(), cache_length=cached)
    async with hosted(showing(SpeedPanel(), step(["x"], time=time)), 50, height) as (_, panel):
        assert not any("context" in line for line in lines(panel))  # no model has said yet how long it is
        panel.context_length = 1024
        assert [line for line in lines(panel) if "context" in line] == ([shown] if shown else [])
