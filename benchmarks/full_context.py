"""What a step costs as the context fills: plain and lookahead steps of the bundled model, empty, half full and full.

Run as `python -m benchmarks.full_context [--rounds 7] [--json FILE]`. The two decoders take turns at each length, so
that a machine that slows down slows both. As in the engine, one core is left free, or what OMP_NUM_THREADS says.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForCausalLM, PreTrainedModel

from benchmarks.demo_decoding import BUNDLED, REFERENCE, answered
from ladechat.bench.machine import describe
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits
from ladechat.model.loading.device import leave_a_core_free
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead

STEPS = 24
"""Steps that are timed at each length; those of lookahead may yield several tokens each."""
ROOM = 192
"""Positions left at the end of a full context for these steps and the window ahead of them."""


def main() -> None:
    """Measure, print a table, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    leave_a_core_free()
    model = AutoModelForCausalLM.from_pretrained(BUNDLED, dtype=torch.float32).eval()
    runner = TreeRunner(model, model.config.max_position_embeddings)
    rows = measure(runner, model, arguments.rounds)
    show(rows)
    if arguments.json:
        report = {"machine": describe(), "threads": torch.get_num_threads(), "dtype": "float32", "steps": rows}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def measure(runner: TreeRunner, model: PreTrainedModel, rounds: int) -> list[dict[str, Any]]:
    """Milliseconds of a step by decoder and cached tokens: the median over rounds, after one to warm up."""
    full = runner.context_length - ROOM
    [prompt] = answered(model, json.loads((REFERENCE / "reference.json").read_text())["prompts"][:1])
    text = (prompt["prompt_ids"] + prompt["greedy_ids"]) * (full // len(prompt["prompt_ids"]) + 1)
    decoders: dict[str, Decoder] = {
        "autoregressive": Decoder(runner),
        "lookahead 5,3,5": lookahead(runner, 5, 3, 5),
    }
    rows = []
    for length in (32, full // 2, full):
        taken: dict[str, list[float]] = {name: [] for name in decoders}
        for number in range(-1, rounds):
            for name, decoder in decoders.items():
                milliseconds = step_ms(runner, decoder, text[:length])
                if number >= 0:
                    taken[name].append(milliseconds)
        for name, all_ms in taken.items():
            spread = [round(min(all_ms), 3), round(max(all_ms), 3)]
            rows.append(
                {"decoder": name, "cached": length, "step_ms": round(statistics.median(all_ms), 3), "range": spread}
            )
    return rows


def step_ms(runner: TreeRunner, decoder: Decoder, prompt: list[int]) -> float:
    """The median milliseconds of a step behind this prompt."""
    for _ in runner.prefill(prompt):
        pass
    taken = []
    started = time.perf_counter()
    for _, _ in zip(decoder.run(prompt, Limits(ROOM - 1, frozenset())), range(STEPS), strict=False):
        now = time.perf_counter()
        taken.append(1000 * (now - started))
        started = now
    return statistics.median(taken)


def show(rows: list[dict[str, Any]]) -> None:
    """The figures as a table."""
    table = Table("decoder", "cached tokens", "ms a step", "range")
    for row in rows:
        low, high = row["range"]
        table.add_row(row["decoder"], f"{row['cached']:,}", f"{row['step_ms']:.2f}", f"{low:.2f}–{high:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
