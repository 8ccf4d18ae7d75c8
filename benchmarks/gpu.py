"""How fast decoding is on a GPU: passes and plain decoding beside the floor and transformers, and that texts stay.

Run as `python -m benchmarks.gpu [--small] [--quick] [--json FILE]` on a machine with a CUDA device; it takes less than
ten minutes there, and with --quick less than three. FILE is written anew after each part, so that a run which is cut
off leaves what it has found. The model has the shape of a Llama of 7 billion parameters (1 billion with --small),
bfloat16 and random weights: what a pass costs does not hang on them, what is guessed right does. All that is compared
takes turns; a figure is the median of its rounds, with the least and the most. With --check everything runs on a CPU,
on a tiny model, with passes that are run anew in place of recorded ones: the figures then mean nothing, the comparisons
of texts do.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
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
    make_it_repeat,
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
from ladechat.registry import lookahead, make

MOST_KERNELS = 20
"""Of each size of pass, in the table of kernels."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures and whether they are what was aimed at, and write them if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="a model of 1 billion parameters")
    parser.add_argument("--check", action="store_true", help="only whether everything runs, on a CPU")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, passes and tokens")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if not options.check and not torch.cuda.is_available():
        print(
            "There is no CUDA device here to measure; use --check to see whether the benchmark runs.", file=sys.stderr
        )
        return 2
    plan = Plan(LLAMA_1B if options.small else LLAMA_7B, torch.device("cuda"), torch.bfloat16)
    if options.quick:
        plan = replace(plan, slots=(1, 8, 16, 64, 120), cached=(512,), tokens=96, rounds=2, passes=8)

    def write_down(report: dict[str, Any]) -> None:
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")

    report = measure(CHECK if options.check else plan, write_down)
    print(json.dumps(report, indent=1))
    for name, target in report["targets"].items():
        print(f"{'met' if target['met'] else 'missed'}: {name}: {target['is']} (aimed at {target['aim']})")
    different = [name for name, one in report["texts"].items() if one["required"] and one["parts_at"] is not None]
    for name in different:
        print(f"The texts differ: {name}.", file=sys.stderr)
    return 1 if different else 0


def measure(plan: Plan, write_down: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """All figures of one model on one device, and whether texts are what they have to be.

    Args:
        plan: what is measured.
        write_down: called after each part with what is known by then.
    """
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
        "seconds": {"ready": round(time.perf_counter() - begin, 1)},
    }
    parts: dict[str, Callable[[], Any]] = {
        "passes": lambda: passes(plan, ways, partial(work.seconds, machine=machine)),
        "decoding": lambda: decoding(plan, ways),
        "kernels": lambda: kernels(plan, ways),
        "texts": lambda: {**of_recordings(plan, ways), **in_float32(plan)},
        "changes": lambda: changes(plan, ways),
        "repeating": lambda: repeating(plan, ways),
        "memory_at_most": lambda: torch.cuda.max_memory_allocated() if plan.device.type == "cuda" else None,
    }
    for name, part in parts.items():
        started = time.perf_counter()
        report[name] = part()
        report["seconds"][name] = round(time.perf_counter() - started, 1)
        print(f"{name}: {report['seconds'][name]} s", file=sys.stderr)
        write_down(report)
    report["texts"]["changing, recorded and run anew"] = report["changes"].pop("text")
    length = plan.prompt + plan.tokens // 2
    report["targets"] = targets(report, work.seconds(1, length, machine), plan)
    write_down(report)
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
        how: dict[str, GraphPasses | None] = {"eager": None, "model's own, graph": ways.recorded(kernels=False)}
        how["graph"] = ways.recorded()
        for _ in runner.prefill(random_text(plan, cached + 1)):
            pass
        for recorded in how.values():
            if recorded is not None:
                recorded.record_all()
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
        recordings = {name: [one._asdict() for one in passes.history] for name, passes in how.items() if passes}
        found.append({"cached": cached, "recordings": recordings})
    return found


def pass_seconds(runner: TreeRunner, slots: int) -> float:
    tree = SlotTree.chain([5] * slots)
    started = time.perf_counter()
    runner.argmax(runner.forward(tree))
    seconds = time.perf_counter() - started
    runner.commit([])
    return seconds


def kernels(plan: Plan, ways: Ways) -> dict[str, list[dict[str, Any]]]:
    """Which kernels take how long in a recorded pass of one slot, and in one of 64: the longest first."""
    runner, found = ways.runner, {}
    runner.graphs = ways.recorded()
    assert runner.graphs is not None
    for _ in runner.prefill(random_text(plan, plan.cached[0] + 1)):
        pass
    on_card = plan.device.type == "cuda"
    activity = torch.profiler.ProfilerActivity.CUDA if on_card else torch.profiler.ProfilerActivity.CPU
    for slots in (1, 64):
        runner.graphs.record_all()
        with torch.profiler.profile(activities=[activity]) as profile:
            pass_seconds(runner, slots)
        spent = {event: event.self_device_time_total if on_card else event.self_cpu_time_total
                 for event in profile.key_averages()}  # fmt: skip
        longest = sorted(spent, key=lambda event: -spent[event])[:MOST_KERNELS]
        found[f"{slots} slots"] = [
            {"kernel": event.key[:120], "calls": event.count, "us": round(spent[event], 1)} for event in longest
        ]
    return found


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
    steps, times = write(ways.runner, recorded, lookahead(ways.runner, *LOOKAHEAD), prompt, plan)
    graph = rates["plain, graph"]
    took = [late - early for early, late in pairwise(times)]
    return {
        "refused": refused,
        "tokens_per_second": {name: spread(found) for name, found in rates.items()},
        "plain_graph_to": {
            name: spread([mine / theirs for mine, theirs in zip(graph, rates[name], strict=True)]) for name in rates
        },
        "lookahead_tokens_per_step": round(sum(len(step.tokens) for step in steps) / len(steps), 3),
        "lookahead_step_ms": spread(took, 1000),
        "of_which_the_pass_ms": spread([step.forward_seconds for step in steps[1:]], 1000),
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
        "recordings": [one._asdict() for one in recorded.history],
    }


def repeating(plan: Plan, ways: Ways) -> dict[str, Any] | None:
    """Tokens a second, and a step, of a text of the same tokens over and over: the best that guesses can do.

    None of a model whose output layer is its embedding: it cannot be made to write one.
    """
    if plan.shape["tie_word_embeddings"]:
        return None
    make_it_repeat(ways.model)
    prompt, recorded, found = random_text(plan, plan.prompt), ways.recorded(), {}
    for name in ("autoregressive", "lookahead", "auto", "prompt_lookup", "suffix"):
        decoder = make(name, ways.runner)
        if name == "lookahead":
            decoder.configure(dict(zip(("window", "ngram", "guesses"), LOOKAHEAD, strict=True)))
        rates, steps = list[float](), list[Step]()
        for number in range(-1, plan.rounds):
            steps, times = write(ways.runner, recorded, decoder, prompt, plan)
            if number >= 0:
                tokens, seconds = rate_of((steps, times))
                rates.append(tokens / seconds)
        tokens_per_step = round(sum(len(step.tokens) for step in steps) / len(steps), 2)
        found[name] = {"tokens_per_second": spread(rates), "tokens_per_step": tokens_per_step}
    return found


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
