"""Measure vLLM with our drafters, with its own n-grams and without any: tokens a step, tokens a second.

    .venv/bin/python -m benchmarks.served --at-once 1 4 8 --rounds 3 -o benchmarks/results/served.json

All servers run at once and are asked in turns, so that a machine that slows down slows all of them.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
from rich.table import Table

from benchmarks.common import command_line, console, written
from benchmarks.timed_proposer import TIMES
from ladechat.bench.questions import read_questions
from tools.real_server import NAME, running

KINDS = ("chat", "code", "maths", "summary")
LEAST_STEP = 0.001
"""Seconds: between two calls that are closer there was no pass."""


@dataclass(frozen=True)
class Measured:
    """What one server did with all questions, so many at once."""

    server: str
    at_once: int
    tokens_a_step: float
    tokens_a_second: float


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 4, 8], help="questions at once")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128, help="the most of an answer")
    parser.add_argument("--drafts", type=int, default=8, help="num_speculative_tokens")
    parser.add_argument("--per-kind", type=int, default=8, help="questions of each kind")
    parser.add_argument("-o", "--output", type=Path)
    chosen = parser.parse_args()
    questions = [one.turns[0] for kind in KINDS for one in read_questions([kind])[: chosen.per_kind]]
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        times = Path(folder) / "times.jsonl"
        os.environ[TIMES] = str(times)
        servers = {}
        for name, options in speculations(chosen.drafts).items():
            rows = ["--max-num-seqs", str(max(chosen.at_once))]
            servers[name] = stack.enter_context(running("vllm", *rows, *options, log=Path(folder) / f"{name}.log"))
            ask(servers[name], questions[0], 16)
        for at_once in chosen.at_once:
            rounds = [
                [measured(name, address, questions, at_once, chosen.tokens) for name, address in servers.items()]
                for _ in range(chosen.rounds)
            ]
            found += [median(results) for results in zip(*rounds, strict=True)]
        calls = call_times(times.read_text(encoding="utf-8").splitlines())
    print_tables(found, calls)
    written(
        {"tokens": chosen.tokens, "drafts": chosen.drafts, "served": [asdict(one) for one in found], "calls": calls},
        chosen.output,
    )


def speculations(drafts: int) -> dict[str, list[str]]:
    """The options of each server, by its name in the table."""
    own: dict[str, object] = {"method": "ngram", "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    ours: dict[str, dict[str, object]] = {
        name: {"method": "custom_class", "model": f"benchmarks.timed_proposer.{kind}"}
        for name, kind in (("ours", "TimedProposer"), ("ours, sharing", "TimedSharingProposer"))
    }
    drafting = {"its n-grams": own, **ours}
    options = {
        name: ["--speculative-config", json.dumps({**how, "num_speculative_tokens": drafts})]
        for name, how in drafting.items()
    }
    return {"plain": [], **options}


def ask(address: str, question: str, tokens: int) -> tuple[int, int]:
    """The tokens of an answer, and the steps that it took."""
    body = {"model": NAME, "messages": [{"role": "user", "content": question}], "max_tokens": tokens, "temperature": 0}
    said = httpx.post(f"{address}/v1/chat/completions", json=body, timeout=600).raise_for_status().json()
    counts = (said.get("metrics") or {}).get("speculative_decoding") or {"num_accepted_draft_tokens": 0}
    count = said["usage"]["completion_tokens"]
    return count, count - counts["num_accepted_draft_tokens"]


def measured(name: str, address: str, questions: Sequence[str], at_once: int, tokens: int) -> Measured:
    """Ask all questions."""
    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as asking:
        answers = list(asking.map(lambda question: ask(address, question, tokens), questions))
    seconds = time.perf_counter() - began
    count, steps = map(sum, zip(*answers, strict=True))
    return Measured(name, at_once, count / steps, count / seconds)


def median(results: Sequence[Measured]) -> Measured:
    """The same server in all rounds."""
    first = results[0]
    steps, seconds = ([getattr(one, f"tokens_a_{what}") for one in results] for what in ("step", "second"))
    return Measured(first.server, first.at_once, statistics.median(steps), statistics.median(seconds))


def call_times(lines: Sequence[str]) -> list[dict[str, float]]:
    """Of each batch size the median milliseconds of a call and of a step, and the share of the one in the other."""
    calls: dict[int, list[tuple[float, float]]] = {}
    for line in map(json.loads, lines):
        if line["step"] > LEAST_STEP:
            calls.setdefault(line["rows"], []).append((line["seconds"], line["step"]))
    found = []
    for rows, its in sorted(calls.items()):
        call, step = (1000 * statistics.median(column) for column in zip(*its, strict=True))
        found.append({"rows": rows, "calls": len(its), "call_ms": call, "step_ms": step, "share": call / step})
    return found


def print_tables(found: Sequence[Measured], calls: Sequence[dict[str, float]]) -> None:
    """Print both tables."""
    table = Table("at once", "drafts", "tokens a step", "tokens/s")
    for one in found:
        table.add_row(str(one.at_once), one.server, f"{one.tokens_a_step:.2f}", f"{one.tokens_a_second:.1f}")
    console().print(table)
    table = Table("rows", "calls", "ms a call", "ms a step", "share", title="Our proposer")
    for call in calls:
        times = (f"{call['call_ms']:.2f}", f"{call['step_ms']:.1f}", f"{call['share']:.2%}")
        table.add_row(str(call["rows"]), str(call["calls"]), *times)
    console().print(table)


if __name__ == "__main__":
    main()
