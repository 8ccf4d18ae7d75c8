"""How fast decoding is on a GPU: passes and plain decoding beside the floor and transformers, and that texts stay.

Run as `python -m benchmarks.gpu [--small] [--json FILE]` on a machine with a CUDA device; it takes less than ten
minutes there. The model has the shape of a Llama of 7 billion parameters (1 billion with --small), bfloat16 and random
weights: what a pass costs does not hang on them, what is guessed right does. All that is compared takes turns; a figure
is the median of its rounds, with the least and the most. With --check everything runs on a CPU, on a tiny model, with
passes that are run anew in place of recorded ones: the figures then mean nothing, the comparisons of texts do.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.floor import Machine, bandwidth, matrix_rate, work_of_model
from benchmarks.gpu_texts import beside, in_float32, of_recordings
from benchmarks.gpu_ways import (
    CHECK,
    LLAMA_1B,
    LLAMA_7B,
    LOOKAHEAD,
    Plan,
    Ways,
    random_model,
    random_text,
    tokens_of,
    ways_of,
    write,
)
from ladechat.bench.machine import describe
from ladechat.bench.methods import clock
from ladechat.decoder.loop import Decoder
from ladechat.decoder.step import Step
from ladechat.decoder.verify_mask import SlotTree
from ladechat.model.runners.graphs import GraphPasses
from ladechat.model.runners.tree import TreeRunner
from ladechat.registry import lookahead


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures and whether they are what was aimed at, and write them if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a model of 1 billion parameters")
    parser.add_argument("--check", action="store_true", help="only whether everything runs, on a CPU")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if not options.check and not torch.cuda.is_available():
        print(
            "There is no CUDA device here to measure; use --check to see whether the benchmark runs.", file=sys.stderr
        )
        return 2
    plan = Plan(LLAMA_1B if options.small else LLAMA_7B, torch.device("cuda"), torch.bfloat16)
    report = measure(CHECK if options.check else plan)
    print(json.dumps(report, indent=1))
    for name, target in report["targets"].items():
        print(f"{'met' if target['met'] else 'missed'}: {name}: {target['is']} (aimed at {target['aim']})")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    different = [name for name, one in report["texts"].items() if one["required"] and one["parts_at"] is not None]
    for name in different:
        print(f"The texts differ: {name}.", file=sys.stderr)
    return 1 if different else 0


def measure(plan: Plan) -> dict[str, Any]:
    """All figures of one model on one device, and whether texts are what they have to be."""
    torch.manual_seed(0)
    begin = time.perf_counter()
    model = random_model(plan)
    work = work_of_model(model)
    machine = Machine(bandwidth(work.weight_bytes, plan.dtype, plan.device), matrix_rate(plan.dtype, plan.device))
    ways = ways_of(model)
    report: dict[str, Any] = {
        **about(plan.device),
        "model": {**plan.shape, "dtype": str(plan.dtype).removeprefix("torch.")},
        "bandwidth": machine.bandwidth,
        "matrix_rate": machine.matrix_rate,
        "ready_seconds": time.perf_counter() - begin,
        "passes": passes(plan, ways, partial(work.seconds, machine=machine)),
        "decoding": decoding(plan, ways),
        "texts": {**of_recordings(plan, ways), **in_float32(plan)},
        "changes": changes(plan, ways),
    }
    report["texts"]["changing, recorded and run anew"] = report["changes"].pop("text")
    length = plan.prompt + plan.tokens // 2
    report["targets"] = targets(report, work.seconds(1, length, machine), plan)
    report["seconds"] = time.perf_counter() - begin
    return report


def about(device: torch.device) -> dict[str, Any]:
    """What it was measured on."""
    if device.type != "cuda":
        return {"card": "none: a check on a CPU", "machine": describe()}
    card = torch.cuda.get_device_properties(device)
    return {"card": card.name, "memory": card.total_memory, "cuda": torch.version.cuda, "machine": describe()}


def passes(plan: Plan, ways: Ways, floor: Callable[[int, int], float]) -> list[dict[str, Any]]:
    """The milliseconds of passes of several sizes, their results read, and the part of them that the floor is."""
    runner, found = ways.runner, []
    for cached in plan.cached:
        for _ in runner.prefill(random_text(plan, cached + 1)):
            pass
        recorded = ways.recorded()
        assert recorded is not None
        recorded.record_all()
        how: dict[str, GraphPasses | None] = {"eager": None, "graph": recorded}
        times: dict[tuple[str, int], list[float]] = {(name, slots): [] for slots in plan.slots for name in how}
        for number in range(-1, plan.passes):
            for name, slots in times:
                runner.graphs = how[name]
                seconds = pass_seconds(runner, slots)
                if number >= 0:
                    times[name, slots].append(seconds)
        for (name, slots), taken in times.items():
            of_floor = round(floor(slots, cached) / statistics.median(taken), 3)
            found.append({"way": name, "slots": slots, "cached": cached, "ms": spread(taken, 1000), "floor": of_floor})
        found.append({"cached": cached, "recordings": [vars(one) for one in recorded.history]})
    return found


def pass_seconds(runner: TreeRunner, slots: int) -> float:
    tree = SlotTree.chain([5] * slots)
    started = time.perf_counter()
    runner.argmax(runner.forward(tree))
    seconds = time.perf_counter() - started
    runner.commit([])
    return seconds


def decoding(plan: Plan, ways: Ways) -> dict[str, Any]:
    """Tokens a second behind the first one, of one text, in rounds in which all take their turn."""
    prompt, model, recorded = random_text(plan, plan.prompt), ways.model, ways.recorded()
    methods: dict[str, Callable[[], tuple[int, float]]] = {
        "plain, eager": lambda: rate_of(write(ways.runner, None, Decoder(ways.runner), prompt, plan)),
        "plain, graph": lambda: rate_of(write(ways.runner, recorded, Decoder(ways.runner), prompt, plan)),
        "lookahead 15,5,15, graph": lambda: rate_of(
            write(ways.runner, recorded, lookahead(ways.runner, *LOOKAHEAD), prompt, plan)
        ),
        "transformers, eager": lambda: generated(model, prompt, plan),
        "transformers, static and compiled": lambda: generated(model, prompt, plan, cache_implementation="static"),
    }
    refused: dict[str, str] = {}
    for name in list(methods):  # to warm up: what is recorded or compiled on the way does not count
        try:
            methods[name]()
        except Exception as error:  # of transformers' compiled generate, say: the others are still worth their while
            refused[name] = str(error)
            del methods[name]
    rates: dict[str, list[float]] = {name: [] for name in methods}
    for number in range(plan.rounds):
        names = list(methods)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            tokens, seconds = methods[name]()
            rates[name].append(tokens / seconds)
    steps, _ = write(ways.runner, recorded, lookahead(ways.runner, *LOOKAHEAD), prompt, plan)
    graph = rates["plain, graph"]
    return {
        "refused": refused,
        "tokens_per_second": {name: spread(found) for name, found in rates.items()},
        "plain_graph_to": {
            name: spread([mine / theirs for mine, theirs in zip(graph, rates[name], strict=True)]) for name in rates
        },
        "lookahead_tokens_per_step": round(sum(len(step.tokens) for step in steps) / len(steps), 3),
    }


def rate_of(written: tuple[list[Step], list[float]]) -> tuple[int, float]:
    """Tokens behind the first step, and the seconds that they took."""
    steps, times = written
    return sum(len(step.tokens) for step in steps[1:]), times[-1] - times[0]


class Times:
    """A streamer that notes when tokens come."""

    def __init__(self, device: torch.device) -> None:
        self.times: list[float] = []
        self._now = clock(device)

    def put(self, value: torch.Tensor) -> None:
        """Called with the prompt, then with each token."""
        self.times.append(self._now())

    def end(self) -> None:
        """Called at the end."""


def generated(model: Any, prompt: list[int], plan: Plan, **options: Any) -> tuple[int, float]:
    """As `rate_of`, of transformers' own greedy `generate`."""
    times, ids = Times(model.device), torch.tensor([prompt], device=model.device)
    model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=plan.tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        streamer=times,
        **options,
    )
    assert len(times.times) == plan.tokens + 1, "generate has ended early"
    return plan.tokens - 1, times.times[-1] - times.times[1]


def changes(plan: Plan, ways: Ways) -> dict[str, Any]:
    """How long a step takes at most while W, N and G change and nothing is recorded yet, and what recordings take."""
    prompt = random_text(plan, plan.prompt)
    recorded = ways.recorded()
    assert recorded is not None
    steps, times = write(ways.runner, recorded, lookahead(ways.runner, *LOOKAHEAD), prompt, plan, changing=True)
    anew, _ = write(ways.runner, ways.unrecorded(), lookahead(ways.runner, *LOOKAHEAD), prompt, plan, changing=True)
    return {
        "text": beside(tokens_of(steps), tokens_of(anew)),
        "steps": len(steps),
        "longest_step_ms": round(1000 * max(late - early for early, late in pairwise(times)), 2),
        "longest_recording_ms": round(1000 * max((one.seconds for one in recorded.history), default=0.0), 2),
        "recordings": [vars(one) for one in recorded.history],
    }


def targets(report: dict[str, Any], floor_seconds: float, plan: Plan) -> dict[str, dict[str, Any]]:
    """What was aimed at, what it is, and whether it is met."""
    decoding = report["decoding"]
    ms = {
        one["slots"]: one["ms"][0]
        for one in report["passes"]
        if one.get("way") == "graph" and one["cached"] == plan.cached[0]
    }
    of_floor = floor_seconds * decoding["tokens_per_second"]["plain, graph"][0]
    eager, compiled = (
        decoding["plain_graph_to"].get(name, [0.0])[0]
        for name in ("transformers, eager", "transformers, static and compiled")
    )
    step = ms[120] / ms[1]
    return {
        "plain decoding, part of the floor": {"is": round(of_floor, 3), "aim": "≥ 0.8", "met": of_floor >= 0.8},
        "a step of 120 tokens, in steps of 1": {"is": round(step, 3), "aim": "≤ 1.15", "met": step <= 1.15},
        "plain decoding ÷ eager generate": {"is": eager, "aim": "≥ 5", "met": eager >= 5},
        "plain decoding ÷ compiled generate": {"is": compiled, "aim": "≥ 1.3", "met": compiled >= 1.3},
    }


def spread(values: Sequence[float], times: float = 1) -> list[float]:
    """Median, least and most."""
    return [round(times * value, 3) for value in (statistics.median(values), min(values), max(values))]


if __name__ == "__main__":
    sys.exit(main())
