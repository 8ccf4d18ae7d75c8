"""The plot: bars of speedup by kind of prompt, labelled with S. The only module that imports matplotlib."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ladechat.bench.figures import Figures
from ladechat.bench.report import BenchReport
from ladechat.files import replace_file

COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
"""Okabe and Ito's palette, which people with any kind of colour vision can tell apart."""

HATCHES = ("", "///", "...", "xxx")
"""One for each repetition of the colours."""

SHARE_OF_BARS = 0.86
"""The fraction of a group's width that its bars take."""


def write_plot(report: BenchReport, path: Path) -> None:
    """Draw the report into a PNG or an SVG file, depending on its suffix."""
    groups = ["all prompts", *report.kinds]
    names = list(report.overall)
    figure = Figure(figsize=(max(9.0, 1.5 + 0.3 * len(names) * len(groups)), 5.0), layout="constrained")
    axes = figure.add_subplot()
    width = SHARE_OF_BARS / len(names)
    for index, name in enumerate(names):
        rows = {"all prompts": report.overall[name], **report.by_kind[name]}
        offset = (index - (len(names) - 1) / 2) * width
        _draw_bars(axes, index, name, {place + offset: rows[group] for place, group in enumerate(groups)}, width)
    axes.axhline(1, color="grey", linewidth=0.8, zorder=0)
    axes.set_xticks(range(len(groups)), groups, parse_math=False)
    axes.set_ylabel("speedup against plain decoding")
    title = "{model} on {device}, {dtype}; on the bars S, tokens per step".format(**report.about)
    axes.set_title(title, fontsize=10, parse_math=False)
    axes.margins(y=0.12)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    drawn = BytesIO()
    figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=150)
    replace_file(path, drawn.getvalue(), make_folder=False)


def _draw_bars(axes: Axes, index: int, name: str, rows: Mapping[float, Figures], width: float) -> None:
    """Draw the bars of one method at their x positions, each with its range over rounds and its S."""
    measured = {place: row for place, row in rows.items() if row.speedup is not None and row.speedup_range is not None}
    heights = [row.speedup or 0.0 for row in measured.values()]
    ranges = [row.speedup_range or (0.0, 0.0) for row in measured.values()]
    bars = axes.bar(
        list(measured),
        heights,
        width,
        label=name,
        color=COLOURS[index % len(COLOURS)],
        hatch=HATCHES[index // len(COLOURS) % len(HATCHES)],
        edgecolor="white",
        linewidth=0.5,
    )
    below = [height - low for height, (low, _) in zip(heights, ranges, strict=True)]
    above = [high - height for height, (_, high) in zip(heights, ranges, strict=True)]
    axes.errorbar(list(measured), heights, [below, above], fmt="none", ecolor="dimgrey", elinewidth=0.8)
    for bar, row, (_, high) in zip(bars, measured.values(), ranges, strict=True):
        place = (bar.get_x() + bar.get_width() / 2, high)
        axes.annotate(
            f"{row.tokens_per_step:.2f}",
            place,
            (0, 3),
            textcoords="offset points",
            ha="center",
            rotation=90,
            fontsize=7,
        )
