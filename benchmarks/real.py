"""Decoders on a real chat model: ladechat in 16, 8 and 4 bits, transformers, llama.cpp, an older checkout; in one run.

Run as `python -m benchmarks.real --model FOLDER --questions FILE.jsonl [--llama-cpp [PYTHON]] [--packed FILE.gguf]
[--old CHECKOUT] [--temperature T] [--out FILE.json]`; the last line that `make real-model` prints is the folder of a
model. The questions are in the format of Spec-Bench: a JSON object a line with `id`, `category` and `turns`, of which
the first is asked. llama.cpp takes part if llama-cpp-python is there, best built for this machine
(`CMAKE_ARGS=-DGGML_NATIVE=ON pip install --no-binary llama-cpp-python llama-cpp-python`; where there is AMX by clang,
since what gcc 12 builds of it ends with an illegal instruction). A file of --packed is the same model as GGUF: our
decoders and llama.cpp both run it as it is.

Each implementation has a process of its own with its own copy of the model, on all cores. All methods answer a question
before any gets the next, one at a time, in an order that changes. Every answer begins with an empty KV cache and new
drafters; `auto` keeps the rates and costs that it has learnt, as in the app. `auto warm` does as the app does by
default: it drafts from its own earlier answers too, and has answered --earlier other questions before the first one.
Answers are kept beside the result until that is written: the same command goes on where a run has ended.

Two processes of the same code may differ: on one machine by 8 to 10 %, whichever the method. So compare two checkouts
by "× plain" of each, or measure a checkout against a copy of itself first. Intervals hold 95 % of what the figures are
if other questions are drawn from the same ones; they say nothing of another hour or machine.
"""

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.common import RESULTS, ROOT, command_line, console
from benchmarks.real_answers import Answers
from benchmarks.real_gguf import write_in_16_bits
from benchmarks.real_llama import KINDS
from benchmarks.real_packed import SPECULATIONS
from benchmarks.real_processes import Process
from benchmarks.real_questions import Question, chosen, others, read_questions, tokenized
from benchmarks.real_report import make_report, show
from benchmarks.real_worker import AUTO, WARM
from ladechat.bench.machine import describe
from ladechat.bench.measure import rotated
from ladechat.bench.methods import TimedAnswer
from ladechat.bench.options import PLAIN, listed
from ladechat.model.loading.device import available_cores

DECODERS = "lookahead,prompt_lookup,suffix,recycling,auto"
SETTINGS = ("5,3,5", "15,5,15")
WARM_UP_TOKENS = 16
PIPE_COLUMNS = 180
"""The width of tables where there is no terminal."""


def main() -> int:
    """Measure what is not measured yet, print the tables and write the figures. The exit code."""
    options = read_options()
    processes: dict[str, Process] = {}
    try:
        asked = [int(one) for one in listed(options.ids)]
        every = read_questions(options.questions)
        questions = chosen(every, asked, options.per_category)
        earlier = others(every, questions, options.earlier)
        answers = Answers(options.out.with_suffix(".answers.jsonl"), about(options, questions))
        prompts = tokenized(options.model, [*questions, *earlier])
        with TemporaryDirectory() as folder:
            processes.update(start(options, Path(folder)))
            measure(processes, questions, earlier, prompts, options, answers)
            report = make_report(answers, questions, prompts, processes)
    except (OSError, ValueError, RuntimeError) as error:
        print(f"benchmarks.real: {error}", file=sys.stderr)
        return 2
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


def read_options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = command_line(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="the folder of a checkpoint")
    parser.add_argument("--questions", type=Path, required=True, help="a file in the format of Spec-Bench")
    parser.add_argument(
        "--llama-cpp",
        nargs="?",
        const=sys.executable,
        metavar="PYTHON",
        help="llama.cpp takes part, by the llama-cpp-python of this interpreter or of another",
    )
    parser.add_argument("--packed", type=Path, action="append", default=[], help="a GGUF file; may be given again")
    parser.add_argument("--old", type=Path, help="an older checkout of ladechat, whose decoders take part as well")
    parser.add_argument("--decoders", default=DECODERS, help="of this checkout, besides plain decoding")
    parser.add_argument("--settings", action="append", metavar="W,N,G", help="of lookahead; may be given again")
    parser.add_argument("--quantize", default="int8,int4", help="in which plain decoding and auto take part as well")
    parser.add_argument("--without", action="append", default=[], metavar="METHOD", help="may be given again")
    parser.add_argument("--temperature", type=float, default=0.0, help="answers are sampled; 0, the default: greedy")
    parser.add_argument("--ids", default="", help="questions that are asked in any case, with commas between")
    parser.add_argument("--per-category", type=int, default=2)
    parser.add_argument("--earlier", type=int, default=200, help="questions that `auto warm` has answered before")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128, help="the longest answer")
    parser.add_argument("--threads", type=int, default=available_cores(), help="of each process; all cores by default")
    parser.add_argument("--out", type=Path, default=RESULTS / "real.json")
    return parser.parse_args()


def about(options: argparse.Namespace, questions: Sequence[Question]) -> dict[str, Any]:
    """What is measured on what: two runs of which this is the same may be put together."""
    checkouts = {"commit": ROOT} | ({"old_commit": options.old} if options.old else {})
    return {
        "machine": describe(),
        "model": options.model.name,
        "threads": options.threads,
        "temperature": options.temperature,
        **{name: commit(folder) for name, folder in checkouts.items()},
        "decoders": listed(options.decoders),
        "settings": options.settings or SETTINGS,
        "quantize": listed(options.quantize),
        "llama_cpp": options.llama_cpp is not None,
        "packed": [file.name for file in options.packed],
        "without": options.without,
        "tokens": options.tokens,
        "rounds": options.rounds,
        "earlier": options.earlier,
        "questions": [question.id for question in questions],
    }


def commit(checkout: Path) -> str:
    """The commit that a checkout is at."""
    git = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=checkout, capture_output=True, text=True)
    return git.stdout.strip() or "unknown"


def start(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Process]]:
    """Start the process of each implementation and load its model; ours first. A folder takes files until the end."""
    decoders = list(dict.fromkeys((PLAIN, *listed(options.decoders))))
    settings = [[int(number) for number in numbers.split(",")] for numbers in options.settings or SETTINGS]

    def process(name: str, checkout: Path = ROOT, model: Path = options.model, **more: Any) -> tuple[str, Process]:
        return name, Process(name, checkout.resolve(), model.resolve(), options.threads, **more)

    yield process("this", decoders=decoders, settings=settings)
    for kind in listed(options.quantize):
        yield process(kind, decoders=(PLAIN, AUTO))
    for name in ("transformers", "transformers bfloat16"):
        yield process(name)
    if options.llama_cpp is not None:
        file = write_in_16_bits(options.model, folder / "BF16.gguf")
        for kind in KINDS:
            yield process(f"llama.cpp {kind}", model=file, python=options.llama_cpp)
    for file in options.packed:
        name, packed = process("packed", model=file, decoders=decoders)
        yield f"{name} {file.stem}", packed
        for name in ("packed, llama.cpp", *(f"packed, llama.cpp {kind}" for kind in SPECULATIONS)):
            yield f"{name} {file.stem}", process(name, model=file)[1]
    if options.old is not None:
        yield process("older", options.old, decoders=decoders, settings=settings)


def taking_part(processes: Mapping[str, Process], without: Sequence[str]) -> dict[str, Process]:
    """What answers, by its name.

    Raises:
        ValueError: one that is to be left out is not there, or nothing could be compared without it.
    """
    methods = {name: process for process in processes.values() for name in process.methods}
    wrong = next((name for name in without if name not in methods or name == PLAIN), None)
    if wrong is not None:
        others = ", ".join(name for name in methods if name != PLAIN)
        raise ValueError(f"{wrong!r} cannot be left out; these can: {others}.")
    return {name: process for name, process in methods.items() if name not in without}


def measure(
    processes: Mapping[str, Process],
    questions: Sequence[Question],
    earlier: Sequence[Question],
    prompts: Mapping[int, list[int]],
    options: argparse.Namespace,
    answers: Answers,
) -> None:
    """Put the questions that have no answers yet to all methods, after a short answer of each, and the `earlier`
    questions to those that draft from their own earlier answers.

    Raises:
        ValueError: see `taking_part`.
    """
    methods = taking_part(processes, options.without)

    def answer(name: str, question: Question, tokens: int) -> TimedAnswer:
        how = {"eos": processes["this"].eos, "temperature": options.temperature, "seed": question.id}
        return methods[name].answer(name, prompts[question.id], tokens=tokens, **how)

    left = [
        (number, index, question)
        for number in range(options.rounds)
        for index, question in enumerate(questions)
        if (number, question.id) not in answers.rows
    ]
    for name in methods if left else ():
        answer(name, questions[0], WARM_UP_TOKENS)
        for question in earlier if name.endswith(WARM) else ():
            answer(name, question, options.tokens)
    for done, (number, index, question) in enumerate(left, start=1):
        order = rotated(random.Random(index).sample(list(methods), len(methods)), number)
        row = {name: answer(name, question, options.tokens) for name in order}
        answers.add(number, question.id, {name: row[name] for name in methods})
        print(f"{done} of {len(left)}: question {question.id}, {question.category}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
