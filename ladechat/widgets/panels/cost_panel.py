"""What passes cost on this machine, measured, with the pass that is shown."""

from collections.abc import Sequence

from rich.style import Style
from textual.reactive import reactive

from ladechat.protocol import PassCost
from ladechat.widgets.formatting import cost_in_figures
from ladechat.widgets.panels.cost_chart import CostChart, slots_in_words
from ladechat.widgets.panels.panel import Needs, Row, StepPanel, longest
from ladechat.widgets.steps.cost_curve import curve_of, value_at

BARS_FADED = 0.5
GPU_ROWS = 2


class CostPanel(StepPanel):
    """A bar for each number of slots, as high as its pass costs; the shown pass has the colour of its step."""

    NAME = "what a pass costs here"
    NEEDS = Needs(least=2, usual=8, most=13)

    costs: reactive[Sequence[PassCost]] = reactive(())
    """The costs of passes, the first of one slot. They belong to the machine, so they stay from answer to answer."""

    def explain(self) -> str:
        if not self.costs:
            return "Passes of 1 to 64 slots are timed with the next answer."
        chart = self._chart(LEAST_WIDTH)
        return (
            f"{self._this_pass(chart)[0]}. A slot is a token that goes into a pass: the last token of the text, or a "
            "draft. A bar is the time of a pass of so many slots on this machine, in plain passes (1 slot), measured "
            "before an answer began. The other row of bars is from another machine, a large GPU: there, reading the "
            "weights takes the time."
        )

    def rows(self, width: int, height: int) -> list[Row]:
        titles = self.titles(self.NAME, "cost of a pass")
        if not self.costs:
            return self.only(width, titles, "Measured with the next answer.")
        chart = self._chart(width)
        words: Row = [(longest(width, self._this_pass(chart)), Style())]
        header = self.header(width, titles, [slots_in_words(chart.slots), ""])
        bars = height - 4  # but for header, axis, figures, words
        with_gpu = chart.fits(bars - GPU_ROWS)
        bars -= GPU_ROWS if with_gpu else 0
        if not chart.fits(bars):
            return [header, words]
        own = Style(color=self.palette.style_of_step(self._step.index, 2).color if self._step else None, bold=True)
        shown = chart.bars(bars, self.faded(BARS_FADED), own, self.muted)
        under = [chart.axis(own, self.muted), chart.numbers("cost", chart.cost_of, Style())]
        gpu = chart.gpu(bars, self.faded(BARS_FADED), self.muted) if with_gpu else []
        return [header, *shown, *under, *gpu, words]

    def _chart(self, width: int) -> CostChart:
        slots, costs = self._step.timing.slots if self._step else 1, curve_of(self.costs)
        # Beyond what was timed, in proportion, as the engine does: the arithmetic takes the time there.
        cost = value_at(costs, slots) * max(1.0, slots / costs[-1][0])
        return CostChart(costs, slots, cost, width)

    def _this_pass(self, chart: CostChart) -> list[str]:
        slots, cost = slots_in_words(chart.slots), cost_in_figures(chart.cost)
        if chart.slots > chart.costs[-1][0]:
            cost = f"about {cost}"
        if chart.slots == 1:
            return ["This pass: 1 slot, a plain pass. It brings one token", "1 slot: a plain pass"]
        brought = len(self._step.token_ids) if self._step else 0
        divisor = cost.removeprefix("about ")
        quotient = f"{brought} ÷ {divisor} ≈ {brought / float(divisor):.1f}×"
        return [
            f"{slots} cost {cost} plain passes, brought {brought}: {quotient}",
            f"cost {cost}, brought {brought}: {quotient}",
            f"{slots} cost {cost} plain passes",
            f"cost {cost}×",
        ]


LEAST_WIDTH = 40
"""For figures alone."""
