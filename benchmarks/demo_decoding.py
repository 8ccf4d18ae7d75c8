"""Lookahead next to plain decoding on the bundled model: steps, tokens per step, tokens per second, exactness.

Run as `python -m benchmarks.demo_decoding [--reference] [--rounds 5] [--json FILE]`. The decoders take turns on each
prompt, so that a machine that slows down slows all of them. As in the engine, one core is left free unless
OMP_NUM_THREADS says otherwise. With --reference it runs on the first checkpoint that this project had, in
tests/reference, for which the steps of the method's reference implementation are recorded beside the prompts.
"""

import argparse
import json
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from ladechat.bench.machine import describe
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Limits
from ladechat.model.loading.device import leave_a_core_free
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead

ROOT = Path(__file__).parent.parent
BUNDLED, REFERENCE = ROOT / "ladechat" / "demo", ROOT / "tests" / "reference"
END = frozenset([2])
SETTINGS = [(3, 3, 3), (5, 3, 5), (5, 4, 5), (7, 5, 7), (10, 5, 10), (15, 5, 15)]


@dataclass
class Tally:
    """What one decoder did over all prompts and rounds. Times are seconds, prefill excluded."""

    steps: int = 0
    tokens: int = 0
    exact: bool = True
    seconds: list[float] = field(default_factory=list)

    def as_row(self, plain: "Tally") -> dict[str, Any]:
        """Figures per round; the speedup is the median over rounds of the ratio to plain decoding in that round."""
        ratios = [ours / mine for ours, mine in zip(plain.seconds, self.seconds, strict=True)]
        rounds = len(self.seconds)
        return {
            "steps": self.steps // rounds,
            "tokens_per_step": round(self.tokens / self.steps, 3),
            "tokens_per_second": round(self.tokens / rounds / statistics.median(self.seconds), 1),
            "speedup": round(statistics.median(ratios), 3),
            "speedup_range": [round(min(ratios), 3), round(max(ratios), 3)],
            "exact": self.exact,
        }


def main() -> None:
    """Measure, print a table, and write the figures if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference", action="store_true", help="on the checkpoint that the reference was run on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    leave_a_core_free()
    folder = REFERENCE / "checkpoint" if arguments.reference else BUNDLED
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    reference = json.loads((REFERENCE / "reference.json").read_text())
    prompts = reference["prompts"] if arguments.reference else answered(model, reference["prompts"])
    tallies = measure(model, prompts, arguments.rounds)
    rows = {name: tally.as_row(tallies["autoregressive"]) for name, tally in tallies.items()}
    if arguments.reference:
        for name, steps in reference["total"]["reference_steps"].items():
            rows[f"lookahead {name}"]["reference_steps"] = steps
    show(rows)
    if arguments.json:
        about = {"machine": describe(), "threads": torch.get_num_threads(), "dtype": "float32"}
        report = {**about, "checkpoint": folder.relative_to(ROOT).as_posix(), "decoders": rows}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def answered(model: Any, prompts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same questions for the bundled model, with what transformers' own greedy `generate` answers."""
    tokenizer = AutoTokenizer.from_pretrained(BUNDLED)
    anew = []
    for prompt in prompts:
        messages = [{"role": "user", "content": prompt["question"]}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False).input_ids
        output = model.generate(torch.tensor([ids]), max_new_tokens=300, do_sample=False)
        anew.append({**prompt, "prompt_ids": ids, "greedy_ids": output[0, len(ids) :].tolist()})
    return anew


def measure(model: PreTrainedModel, prompts: list[dict[str, Any]], rounds: int) -> dict[str, Tally]:
    """Every decoder on every prompt, its pool empty each time, `rounds` times after one round to warm up."""
    runner = TreeRunner(model, model.config.max_position_embeddings)

    def decoders() -> dict[str, Decoder]:
        by_name: dict[str, Decoder] = {"autoregressive": Decoder(runner)}
        for settings in SETTINGS:
            name = "lookahead " + ",".join(map(str, settings))
            by_name[name] = lookahead(runner, *settings)
        return by_name

    tallies = {name: Tally() for name in decoders()}
    for number in range(-1, rounds):
        seconds = dict.fromkeys(tallies, 0.0)
        for prompt in prompts:
            for name, decoder in decoders().items():
                tally = tallies[name] if number >= 0 else Tally()
                seconds[name] += run_one(runner, decoder, prompt, tally)
        if number >= 0:
            for name, total in seconds.items():
                tallies[name].seconds.append(total)
    return tallies


def run_one(runner: TreeRunner, decoder: Decoder, prompt: dict[str, Any], tally: Tally) -> float:
    """One answer; seconds of its decoding."""
    for _ in runner.prefill(prompt["prompt_ids"]):
        pass
    answer: list[int] = []
    started = time.perf_counter()
    for step in decoder.run(prompt["prompt_ids"], Limits(len(prompt["greedy_ids"]), END)):
        answer.extend(step.tokens)
        tally.steps += 1
    seconds = time.perf_counter() - started
    tally.tokens += len(answer)
    tally.exact &= answer == prompt["greedy_ids"]
    return seconds


def show(rows: dict[str, dict[str, Any]]) -> None:
    """The figures as a table."""
    table = Table("decoder W,N,G", "steps", "reference", "S", "tok/s", "speedup", "range", "exact")
    for name, row in rows.items():
        low, high = row["speedup_range"]
        figures = (row["steps"], row.get("reference_steps", "–"), row["tokens_per_step"], row["tokens_per_second"])
        exact = "yes" if row["exact"] else "NO"
        table.add_row(name, *map(str, figures), f"{row['speedup']:.2f}×", f"{low:.2f}–{high:.2f}", exact)
    Console().print(table)


if __name__ == "__main__":
    main()
