"""All drafters at the same number of drafted tokens a pass, alone and together in one tree, on a model with maps.

Run as `python -m benchmarks.equal_nodes --model FOLDER --questions FILE.jsonl --maps FILE [--maps FILE]`. The questions
are those of `benchmarks.real`. Tokens per pass do not depend on the machine; the clock is that of this one, all methods
in turn in one process, from the second step of each answer on. Every answer begins with new drafters; policies keep
what they have learnt. Questions that leave no room for an answer in the model's context are left out. Answers are kept
beside the result until that is written: the same command goes on where a run has ended.

A union is a tree of the likeliest nodes of several drafters, as `auto` makes it, but always of so many nodes.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.real import PIPE_COLUMNS, ROOT, commit
from benchmarks.real_answers import Answers
from benchmarks.real_figures import rate
from benchmarks.real_questions import Question, chosen, read_questions, tokenized
from ladechat import registry
from ladechat.bench.machine import describe
from ladechat.bench.methods import TimedAnswer
from ladechat.catalog import DECODERS
from ladechat.decoder.drafters.drafter import Drafter
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Limits, Step
from ladechat.model.kernels.build import Build
from ladechat.model.load import LoadedModel, load
from ladechat.registry import Shared, TrainedParts
from ladechat.tuning.adaptive import AdaptivePolicy
from ladechat.tuning.costs import PassCosts

SIZES = (8, 16, 32)
"""Drafted tokens in a pass."""
PLAIN = "autoregressive"
ALONE = ("prompt_lookup", "suffix", "recycling", "hidden_transfer", "medusa", "layer_skip")
DEEP_ENOUGH = 8
"""A chain of drafts is no better for more."""
CHAINS = ("layer_skip",)
UNIONS = (
    ("suffix", "recycling"),
    ("suffix", "recycling", "hidden_transfer"),
    ("suffix", "recycling", "medusa"),
    ("suffix", "recycling", "hidden_transfer", "medusa"),
)


class Method(NamedTuple):
    """A decoder that is measured: its name, its size if it has one, and what makes it for an answer."""

    name: str
    nodes: int | None
    make: Callable[[], Decoder]


class FreeUpTo(PassCosts):
    """Costs of passes in which so many drafts are free, and more are out of the question."""

    def __init__(self, drafts: int) -> None:
        self._drafts = drafts

    def curve(self, most: int) -> NDArray[np.float64]:
        """See `PassCosts`."""
        return np.where(np.arange(most) <= self._drafts, 1.0, 1e9)

    def observe(self, slots: int, seconds: float) -> None:
        """A clock says nothing here."""


def main() -> int:
    """Measure what is not measured yet, print the table and write the figures. The exit code."""
    options = read_options()
    try:
        questions = chosen(read_questions(options.questions), (), options.per_category)
        prompts = tokenized(options.model, questions)
        folder = options.model.resolve()
        loaded = load(
            folder, folder.name, "cpu", "float32", lambda _: None, lambda _: None, kernels=Build(), maps=options.maps
        )
        room = loaded.runner.context_length - options.tokens
        questions = [question for question in questions if len(prompts[question.id]) <= room]
        answers = Answers(options.out.with_suffix(".answers.jsonl"), about(options, questions))
    except (OSError, ValueError) as error:
        print(f"benchmarks.equal_nodes: {error}", file=sys.stderr)
        return 2
    try:
        measure(loaded, all_methods(loaded), questions, prompts, options.tokens, answers)
    except KeyboardInterrupt:
        print("benchmarks.equal_nodes: Stopped; the same command goes on.", file=sys.stderr)
        return 130
    report = make_report(answers)
    show(report)
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    answers.path.unlink()
    return 0


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="the folder of a checkpoint")
    parser.add_argument("--questions", type=Path, required=True, help="a file in the format of Spec-Bench")
    parser.add_argument("--maps", type=Path, action="append", default=[], help="what was trained for the model")
    parser.add_argument("--per-category", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48, help="the longest answer")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "equal_nodes.json")
    return parser.parse_args()


def about(options: argparse.Namespace, questions: Sequence[Question]) -> dict[str, Any]:
    """What is measured on what: two runs of which this is the same may be put together."""
    return {
        "machine": describe(),
        "model": options.model.name,
        "maps": [path.name for path in options.maps],
        "commit": commit(ROOT),
        "tokens": options.tokens,
        "questions": [question.id for question in questions],
    }


def all_methods(loaded: LoadedModel) -> list[Method]:
    """Plain decoding; each drafter and union at each size, as far as there are maps; `auto` without maps and with."""
    runner, trained, costs = loaded.runner, loaded.maps.by_kind, PassCosts(loaded.runner)
    found = [Method(PLAIN, None, lambda: registry.make(PLAIN, runner, Shared(costs)))]
    for nodes in SIZES:
        ready = [name for name in ALONE if usable(name, trained) and (name not in CHAINS or nodes <= DEEP_ENOUGH)]
        found += [Method(name, nodes, alone(name, nodes, runner, costs, trained)) for name in ready]
        for names in UNIONS:
            if all(usable(name, trained) for name in names):
                found.append(Method(" + ".join(names), nodes, union(names, nodes, runner, costs, trained)))
    for kinds in ((), *((kind,) for kind in trained), tuple(trained)):
        name = " + ".join(("auto", *kinds))
        if all(one.name != name for one in found):
            some = {kind: trained[kind] for kind in kinds}
            found.append(Method(name, None, auto(runner, costs, some)))
    return found


def usable(name: str, trained: Mapping[str, TrainedParts]) -> bool:
    """Whether there are the maps that a decoder needs."""
    needs = DECODERS[name].needs
    return needs is None or needs in trained


def drafters(
    name: str, nodes: int, runner: Runner, costs: PassCosts, trained: Mapping[str, TrainedParts]
) -> list[Drafter]:
    """The drafters of a decoder, with so many nodes."""
    decoder = registry.make(name, runner, Shared(costs, trained=trained))
    decoder.configure({"nodes": nodes, "window": nodes})
    return list(decoder.drafters)


def alone(
    name: str, nodes: int, runner: Runner, costs: PassCosts, trained: Mapping[str, TrainedParts]
) -> Callable[[], Decoder]:
    """What makes a decoder of one drafter."""
    return lambda: Decoder(runner, drafters(name, nodes, runner, costs, trained))


def union(
    names: Sequence[str], nodes: int, runner: Runner, costs: PassCosts, trained: Mapping[str, TrainedParts]
) -> Callable[[], Decoder]:
    """What makes a decoder of several drafters, whose policy stays."""
    policy = AdaptivePolicy(FreeUpTo(nodes))
    return lambda: Decoder(
        runner, [one for name in names for one in drafters(name, nodes, runner, costs, trained)], policy
    )


def auto(runner: Runner, costs: PassCosts, trained: Mapping[str, TrainedParts]) -> Callable[[], Decoder]:
    """What makes `auto` with some maps, whose policy stays."""
    policies: list[Any] = []

    def make() -> Decoder:
        decoder = registry.make("auto", runner, Shared(costs, trained=trained))
        policies.append(decoder.policy)
        decoder.policy = policies[0]
        return decoder

    return make


def measure(
    loaded: LoadedModel,
    methods: Sequence[Method],
    questions: Sequence[Question],
    prompts: Mapping[int, list[int]],
    tokens: int,
    answers: Answers,
) -> None:
    """Put the questions that have no answers yet to all methods, in an order that changes.

    Raises:
        AssertionError: a text is not that of plain decoding.
    """
    limits = Limits(tokens, loaded.eos_ids)
    left = [(index, question) for index, question in enumerate(questions) if (0, question.id) not in answers.rows]
    for method in methods:  # to warm up
        answer(method, loaded.runner, prompts[questions[0].id], Limits(8, loaded.eos_ids))
    for done, (index, question) in enumerate(left, start=1):
        order = random.Random(index).sample(list(methods), len(methods))
        row = {label(one): answer(one, loaded.runner, prompts[question.id], limits) for one in order}
        for name, found in row.items():
            assert found.tokens == row[PLAIN].tokens, f"{name} writes another text for question {question.id}"
        answers.add(0, question.id, {label(one): row[label(one)] for one in methods})
        print(f"{done} of {len(left)}: question {question.id}, {question.category}", file=sys.stderr, flush=True)


def label(method: Method) -> str:
    """As which it stands in the file of answers."""
    return method.name if method.nodes is None else f"{method.name}, {method.nodes}"


def answer(method: Method, runner: Runner, prompt: list[int], limits: Limits) -> TimedAnswer:
    """One answer. The prompt is not read anew if it is cached: nothing that is reported depends on it."""
    for _ in runner.prefill(prompt):
        pass
    decoder = method.make()
    steps: list[Step] = []
    first = ended = began = time.perf_counter()
    for step in decoder.run(prompt, limits):
        ended = time.perf_counter()
        first = first if steps else ended
        steps.append(step)
    return TimedAnswer(
        tokens=tuple(token for step in steps for token in step.tokens),
        first_tokens=len(steps[0].tokens),
        passes=len(steps),
        slots=sum(step.slots for step in steps),
        first_seconds=first - began,
        rest_seconds=ended - first,
        accepted=dict(sources(step.origins for step in steps)),
    )


def sources(origins: Iterator[Sequence[str]]) -> dict[str, int]:
    """How many tokens each source has brought."""
    counts: dict[str, int] = {}
    for source in (one for each in origins for one in each):
        counts[source] = counts.get(source, 0) + 1
    return counts


def make_report(answers: Answers) -> dict[str, Any]:
    """The figures of all methods."""
    rows = list(answers.rows.values())
    plain = rate([row[PLAIN] for row in rows])
    methods = {}
    for name in rows[0]:
        own = [row[name] for row in rows]
        tokens, passes, by_source = (
            sum(len(one.tokens) for one in own),
            sum(one.passes for one in own),
            [one.accepted for one in own],
        )
        methods[name] = {
            "tokens_per_pass": round(tokens / passes, 3),
            "slots_per_pass": round(sum(one.slots for one in own) / passes, 2),
            "to_plain": round((rate(own) or 0.0) / (plain or 1.0), 3),
            "tokens_by_source": {
                source: sum(one.get(source, 0) for one in by_source)
                for source in sorted({s for one in by_source for s in one})
            },
        }
    return {**answers.about, "methods": methods}


def show(report: Mapping[str, Any]) -> None:
    """Print the table."""
    table = Table(
        "method",
        "S",
        "slots",
        "× plain",
        "tokens by source",
        title=f"{report['model']}, {len(report['questions'])} questions",
    )
    for name, row in report["methods"].items():
        numbers = (f"{row['tokens_per_pass']:.2f}", f"{row['slots_per_pass']:.1f}", f"{row['to_plain']:.2f}")
        table.add_row(
            name, *numbers, ", ".join(f"{source} {count}" for source, count in row["tokens_by_source"].items())
        )
    Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(table)


if __name__ == "__main__":
    sys.exit(main())
