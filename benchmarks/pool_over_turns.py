"""What it is worth to keep the n-gram pool over the turns of a conversation: tokens per step with and without.

Run as `python -m benchmarks.pool_over_turns [--model FOLDER] [--json FILE]`. Greedy answers to the conversations of
`ladechat bench` (multi_turn), float32, on a CPU; the same tokens in every variant, so that steps tell all.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ladechat.bench.machine import describe
from ladechat.bench.prompts import Prompt, make_prompts
from ladechat.bench.questions import read_questions
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.step import Limits
from ladechat.model.loading import LoadedModel, load

BUNDLED = Path(__file__).parent.parent / "ladechat" / "demo"
SETTINGS = [(5, 3, 5), (7, 5, 7), (15, 5, 15), (0, 4, 3), (0, 4, 8)]
LONGEST_ANSWER = 96
VARIANTS = {
    "empty at each turn": (False, False),
    "empty at each turn, prompt learnt": (False, True),
    "kept over the turns": (True, False),
    "kept over the turns, prompt learnt": (True, True),
}
"""Whether the pool is kept, and whether the n-grams of the prompt, all earlier turns included, enter it."""


def main() -> None:
    """Measure, print a table, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=BUNDLED)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.model
    loaded = load(folder, folder.name, "cpu", "float32", report=lambda _: None, progress=lambda _: None)
    prompts = make_prompts(loaded, read_questions(["multi_turn"]), LONGEST_ANSWER, tick=lambda: None)
    rows = {
        f"{name} · {','.join(map(str, numbers))}": measure(loaded, prompts, numbers, *variant)
        for numbers in SETTINGS
        for name, variant in VARIANTS.items()
    }
    show(rows)
    if arguments.json:
        report = {"machine": describe(), "model": folder.name, "dtype": "float32", "variants": rows}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def measure(
    loaded: LoadedModel, prompts: Sequence[Prompt], numbers: tuple[int, int, int], keep: bool, learn_prompt: bool
) -> dict[str, Any]:
    """Steps over all turns, and over those that are not the first of their conversation."""
    decoder = LookaheadDecoder(loaded.runner, LookaheadSettings(*numbers, pool_prompt=learn_prompt))
    tokens = {"all": 0, "later": 0}
    steps = {"all": 0, "later": 0}
    exact = True
    for prompt in prompts:
        first = prompt.name.endswith("turn 1")
        if first or not keep:
            decoder.pool.clear()
        taken = list(decoder.run(prompt.token_ids, Limits(LONGEST_ANSWER, loaded.eos_ids)))
        written = [token for step in taken for token in step.tokens]
        exact &= tuple(written) == prompt.expected
        for part in ("all",) if first else ("all", "later"):
            tokens[part] += len(written)
            steps[part] += len(taken)
    return {
        "steps": steps["all"],
        "tokens_per_step": round(tokens["all"] / steps["all"], 3),
        "tokens_per_step_in_later_turns": round(tokens["later"] / steps["later"], 3),
        "exact": exact,
    }


def show(rows: dict[str, dict[str, Any]]) -> None:
    """The figures as a table."""
    table = Table("pool · W,N,G", "steps", "S", "S in later turns", "exact")
    for name, row in rows.items():
        figures = (row["steps"], row["tokens_per_step"], row["tokens_per_step_in_later_turns"])
        table.add_row(name, *map(str, figures), "yes" if row["exact"] else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
