"""What plain passes lose when something else is done between them: they find less of their weights in the cache.

Run as `python -m benchmarks.away [--rounds 60] [--json FILE]`, with the bundled model and its compiled passes, if they
are here. Plain passes, one of the things below, and plain passes again, all of them by turns; of each place behind them
the median counts. Who shares the processor's cache matters: on a machine of one's own there may be nothing to see.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.demo_decoding import BUNDLED
from benchmarks.speed_contenders import passes_of
from ladechat.bench.machine import describe
from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import causal_layout
from ladechat.garbage import collect_seldom
from ladechat.model.loading import load

BEFORE, BEHIND, SETTLED = 6, 14, 4
"""Plain passes before and behind each thing; by the last of these it is said what a settled one takes."""
CACHED = 100


def main() -> None:
    """Measure, print, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    loaded = load(BUNDLED, BUNDLED.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
    loaded.runner.compiled = passes_of(loaded).get("compiled")
    for _ in loaded.runner.prefill([5] * (CACHED + 1)):
        pass
    report: dict[str, Any] = {
        "machine": describe(),
        "model": loaded.name,
        "behind": measure(loaded.runner, arguments.rounds),
    }
    for name, found in report["behind"].items():
        print(f"{name:24} {found}")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure(runner: Runner, rounds: int) -> dict[str, dict[str, Any]]:
    """For each thing: what it takes, the passes behind it, and what these lose behind a second of it, in seconds."""
    things: dict[str, Callable[[], object]] = {
        "nothing": lambda: None,
        "0.3 ms of Python": lambda: _compute(0.0003),
        "2 ms of Python": lambda: _compute(0.002),
        "a pass of 8 slots": lambda: _pass(runner, 8),
        "a pass of 16 slots": lambda: _pass(runner, 16),
    }
    took: dict[str, list[float]] = {name: [] for name in things}
    behind: dict[str, list[list[float]]] = {name: [] for name in things}
    collect_seldom()
    for _ in range(rounds):
        for name, do in things.items():
            for _ in range(BEFORE):
                _pass(runner, 1)
            began = time.perf_counter()
            do()
            took[name].append(time.perf_counter() - began)
            behind[name].append([_pass(runner, 1) for _ in range(BEHIND)])
    return {name: figures(took[name], behind[name], instead="pass" in name) for name in things}


def figures(took: list[float], behind: list[list[float]], instead: bool) -> dict[str, Any]:
    """What is lost, by the medians. `instead`: a plain pass would have been there in its place."""
    passes = [median(place) for place in zip(*behind, strict=True)]
    settled = mean(passes[-SETTLED:])
    longer = median(took) - settled * instead
    lost = sum(one - settled for one in passes[:-SETTLED]) / longer if longer > settled / 2 else None
    return {
        "ms": round(1000 * median(took), 3),
        "passes_behind_ms": [round(1000 * one, 3) for one in passes],
        "lost_per_second": None if lost is None else round(lost, 2),
    }


def page_table(report: Mapping[str, Any]) -> str:
    """The table of a page, Markdown: a row for each thing, with some of the passes behind it."""
    shown = (0, 1, 2, 4, 7, BEHIND - 1)
    heads = " | ".join(f"pass {place + 1}" for place in shown)
    lines = [f"| | ms | {heads} | lost per second |", f"|---|{'---|' * (len(shown) + 2)}"]
    for name, found in report["behind"].items():
        passes = " | ".join(f"{found['passes_behind_ms'][place]:.2f}" for place in shown)
        lost = found["lost_per_second"]
        lines.append(f"| {name} | {found['ms']:.2f} | {passes} | {'' if lost is None else f'{lost:.2f}'} |")
    return "\n".join(lines)


def _pass(runner: Runner, slots: int) -> float:
    began = time.perf_counter()
    runner.read(runner.forward(causal_layout([5] * slots)))
    seconds = time.perf_counter() - began
    runner.keep([])
    return seconds


def _compute(seconds: float) -> None:
    """Nothing that needs memory."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


if __name__ == "__main__":
    main()
