"""The card of the bundled model: the text of `card.md` with the figures of its recipe, losses and examination."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import safe_open

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "ladechat" / "demo"
TRAINED = [DEMO / f"{kind}.safetensors" for kind in ("transfer", "medusa")]
EXAMINATION = ROOT / "benchmarks" / "results" / "demo_examination.json"
BUNDLED, FIRST = "ladechat/demo", "tests/reference/checkpoint"


def card() -> str:
    """The text of the card, Markdown."""
    recipe = json.loads((DEMO / "recipe.json").read_text(encoding="utf-8"))
    losses = [json.loads(line) for line in (DEMO / "losses.jsonl").read_text(encoding="utf-8").splitlines()]
    reports = json.loads(EXAMINATION.read_text(encoding="utf-8"))["checkpoints"]
    runs = _runs(recipe)
    lengths = [phase["length"] for run in runs for phase in run["phases"]]
    gaps = {
        **recipe,
        "parameters": _parameters() / 1e6,
        "copying_from": runs[0]["copying_from"],
        "steps": sum(run["step"] for run in runs),
        "tokens": sum(run["step"] * run["batch_tokens"] for run in runs) / 1e6,
        "runs": _as_words(runs),
        "shortest": min(lengths),
        "longest": max(lengths),
        "hours": _seconds(runs, losses) / 3600,
        "loss": losses[-1]["validation"],
        "kilobytes": sum(path.stat().st_size for path in TRAINED) // 1000,
        "guesses": guesses(),
        "questions": reports[BUNDLED]["overall"]["questions"],
        "scores": scores(reports),
    }
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8").format(**gaps)


def guesses() -> str:
    """The table of what was trained for it."""
    lines = [
        "| file | steps | its first guess of the token after the next is right | one of its eight |",
        "|---|---|---|---|",
    ]
    for path in TRAINED:
        with safe_open(path, framework="pt") as file:
            about = file.metadata()
        ranks = json.loads(about["chances"])[0]
        lines.append(f"| `{path.name}` | {int(about['steps']):,} | {ranks[0]:.0%} | {sum(ranks):.0%} |")
    return "\n".join(lines)


def scores(reports: Mapping[str, Any]) -> str:
    """The table of scores and tokens per step, by kind and overall."""
    bundled, first = reports[BUNDLED], reports[FIRST]
    rows = [(kind, bundled["kinds"][kind], first["kinds"][kind]) for kind in bundled["kinds"]]
    rows.append(("**overall**", bundled["overall"], first["overall"]))
    lines = ["| kind | questions | this model | S | first checkpoint | S |", "|---|---|---|---|---|---|"]
    for kind, ours, theirs in rows:
        lines.append(
            f"| {kind} | {ours['questions']} | {ours['score']:.0%} | {ours['tokens_per_step']:.2f} "
            f"| {theirs['score']:.0%} | {theirs['tokens_per_step']:.2f} |"
        )
    return "\n".join(lines)


def _parameters() -> int:
    """How many numbers the weights are."""
    with safe_open(DEMO / "model.safetensors", framework="pt") as weights:
        return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118  # no dict


def _runs(recipe: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The recipes of all runs that led to these weights, the first one first."""
    earlier = [] if recipe["before"] is None else _runs(recipe["before"])
    return [*earlier, recipe]


def _as_words(runs: Sequence[Mapping[str, Any]]) -> str:
    """How many runs, and how long each was."""
    if len(runs) == 1:
        return "one run"
    return f"{len(runs)} runs, one after the other (" + ", then ".join(f"{run['step']:,}" for run in runs) + ")"


def _seconds(runs: Sequence[Mapping[str, Any]], losses: Sequence[Mapping[str, Any]]) -> float:
    """What all steps took. Each line of the losses closes a segment of steps."""
    segments = [run["segment"] * run["batch_tokens"] for run in runs for _ in range(run["step"] // run["segment"])]
    return float(sum(tokens / line["tokens_per_second"] for tokens, line in zip(segments, losses, strict=True)))


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    (DEMO / "README.md").write_text(card(), encoding="utf-8")
