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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.common import RESULTS, ROOT, command_line, console
from benchmarks.real import PIPE_COLUMNS, commit
from benchmarks.real_answers import Answers
from benchmarks.real_figures import rate
from benchmarks.real_questions import Question, chosen, read_questions, tokenized
from ladechat import registry
from ladechat.bench.machine import describe
from ladechat.bench.methods import TimedAnswer
from ladechat.catalog import DECODERS
from ladechat.decoder.drafters.drafter import Drafter
from ladechat.decoder.loop import Decoder
from ladechat.decoder.policy import Policy
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Limits, Step
from ladechat.model.kernels.build import Build
from ladechat.model.load import load
from ladechat.model.loaded import LoadedModel
from ladechat.registry import Shared
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


Methods = Mapping[str, Callable[[], Decoder]]
"""What makes each decoder for an answer, by its name and, if it has one, its size."""


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
    parser = command_line(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="the folder of a checkpoint")
    parser.add_argument("--questions", type=Path, required=True, help="a file in the format of Spec-Bench")
    parser.add_argument("--maps", type=Path, action="append", default=[], help="what was trained for the model")
    parser.add_argument("--per-category", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48, help="the longest answer")
    parser.add_argument("--out", type=Path, default=RESULTS / "equal_nodes.json")
    options = parser.parse_args()
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
        measure(loaded, questions, prompts, options.tokens, answers)
    except KeyboardInterrupt:
        print("benchmarks.equal_nodes: Stopped; the same command goes on.", file=sys.stderr)
        return 130
    report = make_report(answers)
    show(report)
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    answers.path.unlink()
    return 0


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


def all_methods(loaded: LoadedModel) -> Methods:
    """Plain decoding; each drafter and union at each size, as far as there are maps; `auto` without maps and with.

    Drafters are new for each answer. The policy of a union or of `auto` is made once and stays.
    """
    runner, trained, costs = loaded.runner, loaded.maps.by_kind, PassCosts(loaded.runner)

    def usable(names: Sequence[str]) -> bool:
        return all(DECODERS[name].needs is None or DECODERS[name].needs in trained for name in names)

    def drafters(name: str, nodes: int) -> Sequence[Drafter]:
        decoder = registry.make(name, runner, Shared(costs, trained=trained))
        decoder.configure({"nodes": nodes, "window": nodes})
        return decoder.drafters

    def union(names: Sequence[str], nodes: int) -> Callable[[], Decoder]:
        policy = AdaptivePolicy(FreeUpTo(nodes)) if len(names) > 1 else None
        return lambda: Decoder(runner, [one for name in names for one in drafters(name, nodes)], policy)

    def auto(kinds: Sequence[str]) -> Callable[[], Decoder]:
        policies: list[Policy] = []

        def make() -> Decoder:
            some = {kind: trained[kind] for kind in kinds}
            decoder = registry.make("auto", runner, Shared(costs, trained=some))
            policies.append(decoder.policy)
            decoder.policy = policies[0]
            return decoder

        return make

    found: dict[str, Callable[[], Decoder]] = {PLAIN: lambda: registry.make(PLAIN, runner, Shared(costs))}
    for nodes in SIZES:
        for names in (*((name,) for name in ALONE if name not in CHAINS or nodes <= DEEP_ENOUGH), *UNIONS):
            if usable(names):
                found[f"{' + '.join(names)}, {nodes}"] = union(names, nodes)
    for kinds in ((), *((kind,) for kind in trained), tuple(trained)):
        found.setdefault(" + ".join(("auto", *kinds)), auto(kinds))
    return found


def measure(
    loaded: LoadedModel,
    questions: Sequence[Question],
    prompts: Mapping[int, list[int]],
    tokens: int,
    answers: Answers,
) -> None:
    """Put the questions that have no answers yet to all methods, in an order that changes.

    Raises:
        AssertionError: a text is not that of plain decoding.
    """
    methods, limits = all_methods(loaded), Limits(tokens, loaded.eos_ids)
    left = [(index, question) for index, question in enumerate(questions) if (0, question.id) not in answers.rows]
    for make in methods.values():  # to warm up
        answer(make, loaded.runner, prompts[questions[0].id], Limits(8, loaded.eos_ids))
    for done, (index, question) in enumerate(left, start=1):
        order = random.Random(index).sample(list(methods), len(methods))
        row = {name: answer(methods[name], loaded.runner, prompts[question.id], limits) for name in order}
        for name, found in row.items():
            assert found.tokens == row[PLAIN].tokens, f"{name} writes another text for question {question.id}"
        answers.add(0, question.id, {name: row[name] for name in methods})
        print(f"{done} of {len(left)}: question {question.id}, {question.category}", file=sys.stderr, flush=True)


def answer(make: Callable[[], Decoder], runner: Runner, prompt: list[int], limits: Limits) -> TimedAnswer:
    """One answer. The prompt is not read anew if it is cached: nothing that is reported depends on it."""
    for _ in runner.prefill(prompt):
        pass
    decoder = make()
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
        accepted=dict(Counter(source for step in steps for source in step.origins)),
    )


def make_report(answers: Answers) -> dict[str, Any]:
    """The figures of all methods."""
    rows = list(answers.rows.values())
    plain = rate([row[PLAIN] for row in rows])
    methods = {}
    for name in rows[0]:
        own = [row[name] for row in rows]
        passes = sum(one.passes for one in own)
        by_source = sum((Counter(one.accepted) for one in own), Counter[str]())
        methods[name] = {
            "tokens_per_pass": round(sum(len(one.tokens) for one in own) / passes, 3),
            "slots_per_pass": round(sum(one.slots for one in own) / passes, 2),
            "to_plain": round((rate(own) or 0.0) / (plain or 1.0), 3),
            "tokens_by_source": dict(sorted(by_source.items())),
        }
    return {**answers.about, "methods": methods}


def show(report: Mapping[str, Any]) -> None:
    """Print the table."""
    title = f"{report['model']}, {len(report['questions'])} questions"
    table = Table("method", "S", "slots", "× plain", "tokens by source", title=title)
    for name, row in report["methods"].items():
        numbers = (f"{row['tokens_per_pass']:.2f}", f"{row['slots_per_pass']:.1f}", f"{row['to_plain']:.2f}")
        table.add_row(name, *numbers, ", ".join(f"{one} {count}" for one, count in row["tokens_by_source"].items()))
    console(PIPE_COLUMNS).print(table)


if __name__ == "__main__":
    sys.exit(main())
