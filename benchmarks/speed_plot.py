"""The tuner beside fixed settings, by kind of prompt: the picture of a `benchmarks.speed --grid`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.speed_contenders import COMPILED_IN_TURNS, IN_TURNS

WAYS = (IN_TURNS, COMPILED_IN_TURNS)
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#9a9a9a"
"""Of Okabe and Ito's palette, which people with any kind of colour vision can tell apart."""


def plot(report: Mapping[str, Any], path: Path) -> None:
    """One row for the way that passes run: a dot for each of the fixed settings, and a diamond for `auto`.

    The fastest dot is one that may have been lucky: what that matters says `benchmarks.pairs.auto_to_best`.
    """
    contenders: Mapping[str, Mapping[str, Any]] = report["contenders"]
    kinds = list(report["prompts"])
    ways = [way for way in WAYS if f"auto, {way}" in contenders]
    figure = Figure(figsize=(10, 3.6 * len(ways)), layout="constrained")
    for row, way in enumerate(ways):
        axes = figure.add_subplot(len(ways), 1, row + 1)
        _draw(axes, {name: by_kind for name, by_kind in contenders.items() if name.endswith(f", {way}")}, kinds, way)
    figure.suptitle(
        f"{report['model']} on {report['machine']['processor']}, {report['machine']['cores']} cores: "
        "auto beside fixed W,N,G, its trying included",
        fontsize=10,
    )
    figure.savefig(path, dpi=130)


def _draw(axes: Axes, contenders: Mapping[str, Mapping[str, Any]], kinds: list[str], way: str) -> None:
    fixed = [name for name in contenders if not name.startswith(("auto", "plain"))]
    for place, kind in enumerate(kinds):
        ratios = {name: contenders[name][kind]["to_plain"][0] for name in fixed}
        axes.scatter([place - 0.12] * len(ratios), list(ratios.values()), color=GREY, s=16, zorder=2)
        best = max([*ratios, f"plain, {way}"], key=lambda name: ratios.get(name, 1.0))
        value = ratios.get(best, 1.0)
        axes.scatter([place - 0.12], [value], color=BLUE, s=34, zorder=3)
        axes.annotate(best.rsplit(", ", 1)[0].removeprefix("lookahead "), (place - 0.12, value), (-4, 5),
                      textcoords="offset points", ha="right", fontsize=7)  # fmt: skip
        auto, low, high = contenders[f"auto, {way}"][kind]["to_plain"]
        axes.errorbar([place + 0.12], [auto], [[auto - low], [high - auto]], fmt="D", color=ORANGE, zorder=3)
    axes.axhline(1, color="grey", linewidth=0.8, zorder=0)
    axes.set_xticks(range(len(kinds)), [kind.replace("_", " ") for kind in kinds])
    axes.set_yscale("log")
    axes.margins(x=0.08, y=0.1)
    shown = axes.get_ylim()  # ticks beyond would widen it
    ticks = ["0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.4", "2", "3", "4", "6"]
    axes.set_yticks([float(tick) for tick in ticks], ticks)
    axes.set_ylim(shown)
    axes.minorticks_off()
    axes.set_ylabel(f"÷ plain decoding, {way}")
