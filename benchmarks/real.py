"""Decoders on a real chat model: this checkout, transformers, and an older checkout if there is one, in one run.

Run as `python -m benchmarks.real --model FOLDER --questions FILE.jsonl [--old CHECKOUT] [--out FILE.json]`; the last
line that `make real-model` prints is the folder of a model. The questions are in the format of Spec-Bench: a JSON
object a line with `id`, `category` and `turns`, of which the first is asked.

Each implementation has a process of its own with its own copy of the model, in float32 on all cores. All methods answer
a question before any gets the next, one at a time, in an order that changes. Every answer begins with an empty KV cache
and new drafters; `auto` keeps the rates and costs that it has learnt, as in the app. Answers are kept beside the result
until that is written: the same command goes on where a run has ended.

Two processes of the same code may differ: on one machine by 8 to 10 %, whichever the method. So compare two checkouts
by "× plain" of each, or measure a checkout against a copy of itself first.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS, ROOT, command_line, console
from benchmarks.real_answers import Answers
from benchmarks.real_processes import Process
from benchmarks.real_questions import Question, chosen, read_questions, tokenized
from benchmarks.real_report import make_report, show
from ladechat.bench.machine import describe
from ladechat.bench.measure import rotated
from ladechat.bench.options import PLAIN, listed
from ladechat.model.loading.device import available_cores

DECODERS = "lookahead,prompt_lookup,suffix,recycling,auto"
SETTINGS = ("5,3,5", "15,5,15")
WARM_UP_TOKENS = 16
PIPE_COLUMNS = 180
"""The width of tables where there is no terminal."""


def main() -> int:
    """Measure what is not measured yet, print the tables and write the figures. The exit code."""
    parser = command_line(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="the folder of a checkpoint")
    parser.add_argument("--questions", type=Path, required=True, help="a file in the format of Spec-Bench")
    parser.add_argument("--old", type=Path, help="an older checkout of ladechat, whose decoders take part as well")
    parser.add_argument("--decoders", default=DECODERS, help="of this checkout, besides plain decoding")
    parser.add_argument("--settings", action="append", metavar="W,N,G", help="of lookahead; may be given again")
    parser.add_argument("--ids", default="", help="questions that are asked in any case, with commas between")
    parser.add_argument("--per-category", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128, help="the longest answer")
    parser.add_argument("--threads", type=int, default=available_cores(), help="of each process; all cores by default")
    parser.add_argument("--out", type=Path, default=RESULTS / "real.json")
    options = parser.parse_args()
    try:
        asked = [int(one) for one in listed(options.ids)]
        questions = chosen(read_questions(options.questions), asked, options.per_category)
        answers = Answers(options.out.with_suffix(".answers.jsonl"), about(options, questions))
    except (OSError, ValueError) as error:
        print(f"benchmarks.real: {error}", file=sys.stderr)
        return 2
    processes = start(options)
    try:
        prompts = tokenized(options.model, questions)
        measure(processes, questions, prompts, options, answers)
        report = make_report(answers, questions, prompts, processes)
    except KeyboardInterrupt:
        print("benchmarks.real: Stopped; the same command goes on.", file=sys.stderr)
        return 130
    finally:
        for process in processes.values():
            process.end()
    show(report, console(PIPE_COLUMNS))
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    answers.path.unlink()
    return 0


def about(options: argparse.Namespace, questions: Sequence[Question]) -> dict[str, Any]:
    """What is measured on what: two runs of which this is the same may be put together."""
    checkouts = {"commit": ROOT} | ({"old_commit": options.old} if options.old else {})
    return {
        "machine": describe(),
        "model": options.model.name,
        "dtype": "float32",
        "threads": options.threads,
        **{name: commit(folder) for name, folder in checkouts.items()},
        "decoders": listed(options.decoders),
        "settings": options.settings or SETTINGS,
        "tokens": options.tokens,
        "rounds": options.rounds,
        "questions": [question.id for question in questions],
    }


def commit(checkout: Path) -> str:
    """The commit that a checkout is at."""
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=checkout, capture_output=True, text=True)
    return git.stdout.strip() or "unknown"


def start(options: argparse.Namespace) -> dict[str, Process]:
    """The process of each implementation, its model loaded; ours first."""
    model, threads = options.model.resolve(), options.threads
    decoders = list(dict.fromkeys((PLAIN, *listed(options.decoders))))
    settings = [[int(number) for number in numbers.split(",")] for numbers in options.settings or SETTINGS]
    found = {
        "this": Process("this", ROOT, model, threads, decoders, settings),
        "transformers": Process("transformers", ROOT, model, threads),
    }
    if options.old is not None:
        found["older"] = Process("older", options.old.resolve(), model, threads, decoders, settings)
    return found


def measure(
    processes: Mapping[str, Process],
    questions: Sequence[Question],
    prompts: Mapping[int, list[int]],
    options: argparse.Namespace,
    answers: Answers,
) -> None:
    """Put the questions that have no answers yet to all methods, after a short answer of each to warm up."""
    eos = processes["this"].eos
    methods = {name: process for process in processes.values() for name in process.methods}
    for name, process in methods.items():
        process.answer(name, prompts[questions[0].id], WARM_UP_TOKENS, eos)
    left = [
        (number, index, question)
        for number in range(options.rounds)
        for index, question in enumerate(questions)
        if (number, question.id) not in answers.rows
    ]
    for done, (number, index, question) in enumerate(left, start=1):
        order = rotated(random.Random(index).sample(list(methods), len(methods)), number)
        prompt = prompts[question.id]
        row = {name: methods[name].answer(name, prompt, options.tokens, eos) for name in order}
        answers.add(number, question.id, {name: row[name] for name in methods})
        print(f"{done} of {len(left)}: question {question.id}, {question.category}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
