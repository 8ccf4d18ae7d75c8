"""Claims about what a pass costs, as bars: they are what was measured, and what was not measured here says so."""

import json
from pathlib import Path
from statistics import median

import pytest

from ladechat.palette import Palette
from ladechat.protocol import PassCost
from ladechat.widgets.lessons import LessonPanels
from ladechat.widgets.panels.cost_chart import GPU_MS, HERE, CostChart
from ladechat.widgets.panels.cost_panel import CostPanel
from tests.fake_model import POLICY_CHOICE
from tests.widgets.hosting import drawn, hosted, lines, style_of
from tests.widgets.sample_steps import plain_step, step, timing

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "gpu_h100_7b.json"
DEAR = [PassCost(slots=slots, ms=float(slots)) for slots in (1, 2, 4, 8, 16, 32, 64)]


def shown(costs: list[PassCost], slots: int = 16) -> CostPanel:
    panel = CostPanel()
    panel.costs = costs
    panel.show_step(step(["a", "b"], index=3, time=timing(slots)))
    return panel


async def test_bars_rise_as_measured_and_the_pass_that_is_shown_stands_out() -> None:
    async with hosted(shown(DEAR, 11), 71, 16) as (_, panel):
        text = lines(panel)
        assert text[0] == f"what a pass costs here{'11 slots':>49}"
        assert text[-1] == "11 slots cost 11.0 plain passes, brought 2: 2 ÷ 11.0 ≈ 0.2×"
        axis = next(line for line in text if HERE in line)
        assert axis.split() == ["slots", "1", "2", "4", "8", HERE, "16", "32", "64"]
        costs = next(line for line in text if line.lstrip().startswith("cost"))
        assert costs.split() == ["cost", "1.0", "2.0", "4.0", "8.0", "16.0", "32.0", "64.0"]
        assert [costs.index(f" {number}.0") for number in (1, 2, 4)] == [
            axis.index(f" {number} ") for number in (1, 2, 4)
        ]
        bars = text[1 : text.index(axis)]
        heights = [sum(line.ljust(71)[column] == "█" for line in bars) for column in range(7, 71)]
        assert heights == sorted(heights) and heights[-1] == len(bars) and heights[0] == 0
        here = axis.index(HERE)
        assert style_of(panel, bars[-1][here], text.index(bars[-1])).color is not None
        own = {segment.style.color for segment in panel.render_line(text.index(bars[-1])) if segment.style}
        assert Palette().style_of_step(3, 2).color in own


async def test_the_figures_of_a_gpu_are_those_of_a_measurement_and_said_to_be_from_elsewhere() -> None:
    passes = json.loads(RESULTS.read_text(encoding="utf-8"))["passes"]
    measured = {one["slots"]: median(one["ms"]) for one in passes if one.get("way") == "graph"}
    assert {slots: round(ms, 2) for slots, ms in measured.items()} == pytest.approx(GPU_MS, abs=0.011)
    async with hosted(shown(DEAR), 60, 14) as (_, panel):
        [name] = [line for line in lines(panel) if "not measured here" in line]
        assert "H100" in name and f"{GPU_MS[64] / GPU_MS[1]:.1f}× at 64" in name
        assert "from another machine" in panel.explain()


async def test_nothing_is_drawn_where_nothing_was_measured() -> None:
    panel = CostPanel()
    async with hosted(panel, 60, 12) as (pilot, _):
        assert lines(panel)[1] == "Measured with the next answer."
        panel.costs = DEAR[:4]
        panel.show_step(plain_step())
        assert (await drawn(pilot, panel))[-1].startswith("This pass: 1 slot, a plain pass")
        panel.show_step(step(["a"], time=timing(64)))
        text = await drawn(pilot, panel)
        assert text[-1] == "cost about 64.0, brought 1: 1 ÷ 64.0 ≈ 0.0×"
        bars = text[1 : next(row for row, line in enumerate(text) if line.startswith(" slots"))]
        columns = "".join(
            "█" if any(line.ljust(60)[column] in "▄▅▆▇█" for line in bars) else " " for column in range(7, 60)
        )
        assert columns.rstrip().count(" ") > 20, "between the largest timed pass and this one"


async def test_without_a_plain_pass_there_is_no_unit_and_nothing_is_drawn() -> None:
    async with hosted(LessonPanels({}), 60, 40) as (_, side):
        side.show_costs([PassCost(slots=2, ms=3.0)])
        assert lines(side.query_one(CostPanel))[1] == "Measured with the next answer."


async def test_costs_stay_from_answer_to_answer() -> None:
    async with hosted(shown(DEAR), 60, 12) as (pilot, panel):
        panel.clear()
        assert "plain pass" in (await drawn(pilot, panel))[-1]


@pytest.mark.parametrize("height", [1, 2, 3, 5, 8, 12, 20])
@pytest.mark.parametrize("width", [8, 20, 36, 84])
async def test_it_fits_any_room(width: int, height: int) -> None:
    for slots in (1, 16, 120, 4000):
        async with hosted(shown(list(POLICY_CHOICE.costs), slots), width, height) as (_, panel):
            assert len(lines(panel)) <= height


@pytest.mark.parametrize("width", range(20, 90, 7))
def test_no_figure_stands_below_another_number_of_slots(width: int) -> None:
    chart = CostChart([(1.0, 1.0), (64.0, 9.0)], 10, 2.0, width)
    texts = chart._aligned(lambda slots: f"{slots:.0f}.0").split()
    assert texts == sorted(texts, key=float) and texts[0] == "1.0"
