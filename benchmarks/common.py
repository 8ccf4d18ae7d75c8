"""What the scripts share: their options and reports, and contestants that take turns."""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ladechat.bench.machine import describe

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
BUNDLED = ROOT / "ladechat" / "demo"


def command_line(about: str | None) -> argparse.ArgumentParser:
    """Return a parser that describes a script by the first line of its docstring."""
    return argparse.ArgumentParser(description=(about or "").partition("\n")[0])


def written(figures: Mapping[str, Any], file: Path | None) -> dict[str, Any]:
    """Return the figures with the machine they come from, and write them into a file if there is one."""
    report = {"machine": describe(), **figures}
    if file is not None:
        file.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def in_turns(contestants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return what each contestant took in every round, after one round that only warms up.

    They take turns, so that a machine that slows down slows all of them.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(-1, rounds):
        for name, measure in contestants.items():
            took = measure()
            if number >= 0:
                taken[name].append(took)
    return taken


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    """Return median and range, in milliseconds."""
    least_and_most = [round(1000 * value) for value in (min(seconds), max(seconds))]
    return {"median": round(1000 * statistics.median(seconds)), "range": least_and_most}


def own_home(folder: str) -> dict[str, str]:
    """Return an environment in which the program has its files in a folder."""
    return {**os.environ, **{f"XDG_{kind}_HOME": folder for kind in ("CONFIG", "DATA", "STATE", "CACHE")}}


def console(pipe_columns: int = 110) -> Console:
    """Return where tables are printed: so many columns wide if that is no terminal."""
    return Console(width=None if sys.stdout.isatty() else pipe_columns)
