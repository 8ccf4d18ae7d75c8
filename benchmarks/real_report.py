"""The result of `benchmarks.real`: the figures of all methods, as a value for a file and as tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.floor import bandwidth
from benchmarks.real_answers import Answers
from benchmarks.real_figures import Resampled, Row, comparison, difference, figures, tie
from benchmarks.real_processes import Process
from benchmarks.real_questions import Question
from benchmarks.real_worker import AUTO, WARM
from ladechat.bench.options import PLAIN, TRANSFORMERS, by_hand

GENERATE = next(iter(TRANSFORMERS))
BASES = {"to_plain": PLAIN, "to_transformers": GENERATE}
COMPARED = (
    (PLAIN, GENERATE),
    (PLAIN, "llama.cpp BF16"),
    (f"int8 {PLAIN}", "llama.cpp Q8_0"),
    (f"int4 {PLAIN}", "llama.cpp Q4_0"),
    (AUTO, PLAIN),
    (AUTO, GENERATE),
    (WARM, PLAIN),
    (WARM, GENERATE),
    (f"int8 {AUTO}", f"int8 {PLAIN}"),
    (f"int4 {AUTO}", f"int4 {PLAIN}"),
)
"""The ratios that are said with their least kind of question, where both took part."""

PACKED = ((PLAIN, "as it is"), (AUTO, "as it is"), (AUTO, PLAIN), (AUTO, "ngram-simple"), (AUTO, "ngram-mod"))
"""The same of each GGUF file."""

SAME_TEXT = ("this", "older", "transformers")
"""Implementations whose greedy texts differ from plain decoding only where two tokens nearly tie."""


def make_report(
    answers: Answers,
    questions: Sequence[Question],
    prompts: Mapping[int, list[int]],
    processes: Mapping[str, Process],
) -> dict[str, Any]:
    """The figures of all methods, and differences between texts, with what is to be said of them."""
    category = {question.id: question.category for question in questions}
    rows = list(answers.rows.values())
    kinds: dict[str, list[Row]] = {}
    for (_, asked), row in answers.rows.items():
        kinds.setdefault(category[asked], []).append(row)
    resampled = Resampled([asked for _, asked in answers.rows])
    bases = {figure: base for figure, base in BASES.items() if base in rows[0]}
    methods: dict[str, Any] = {}
    for process in processes.values():
        names = [name for name in process.methods if name in rows[0]]
        for name in names:
            overall = figures(rows, name, bases, names[0])
            intervals = {figure: resampled.interval(rows, name, base) for figure, base in bases.items()}
            overall["intervals"] = {"tokens_per_second": resampled.interval(rows, name), **intervals}
            overall["share_of_floor"] = share_of_floor(name, overall["tokens_per_second"], process)
            by_category = {kind: figures(its, name, bases, names[0]) for kind, its in kinds.items()}
            methods[name] = {"overall": overall, "by_category": by_category}
    return {
        **answers.about,
        "implementations": {name: process.facts for name, process in processes.items()},
        "methods": methods,
        "comparisons": [comparison(rows, kinds, resampled, *pair) for pair in compared(methods)],
        "differences": {} if answers.about["temperature"] else differences(answers, prompts, processes),
    }


def share_of_floor(name: str, rate: float | None, process: Process) -> float | None:
    """The time in which this machine reads the weights, at best, as a share of what plain decoding takes for a token.

    None for methods that may emit several tokens a pass, and where the weights are not known.
    """
    size: int | None = process.facts["weight_bytes"]
    if name != process.methods[0] or rate is None or size is None:
        return None
    torch.set_num_threads(process.threads)
    return round(rate * size / bandwidth(size, torch.float32, torch.device("cpu")), 3)


def compared(methods: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Those of `COMPARED` of which both took part; and the fastest setting of the decoder that is set by hand."""
    settings = [name for name in methods if name.startswith(f"{by_hand().name} ")]
    fastest = max(
        settings, key=lambda name: methods[name]["overall"]["tokens_per_second"] or 0.0, default=by_hand().name
    )
    files = [
        name.removesuffix(f" {AUTO}") for name in methods if f"llama.cpp {name.removesuffix(AUTO)}as it is" in methods
    ]
    named = [
        (f"{file} {one}", f"{file} {PLAIN}" if base == PLAIN else f"llama.cpp {file} {base}")
        for file in files
        for one, base in PACKED
    ]
    for pair in (*COMPARED, *named, (fastest, PLAIN)):
        if set(pair) <= methods.keys():
            yield pair


def differences(
    answers: Answers, prompts: Mapping[int, list[int]], processes: Mapping[str, Process]
) -> dict[str, list[dict[str, Any]]]:
    """The texts that differ from plain decoding though they should not, by method, each question once."""
    names = [name for one in SAME_TEXT if one in processes for name in processes[one].methods]
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for (_, asked), row in answers.rows.items():
        for name in names:
            one = difference(asked, row[name], row[PLAIN]) if name in row else None
            if one is not None and asked not in found.setdefault(name, {}):
                text = [*prompts[asked], *row[PLAIN].tokens[: one.token]]
                both = (processes["this"].logits(text), processes["transformers"].logits(text))
                found[name][asked] = {**asdict(one), **tie(*both, one.tokens)}
    return {name: list(its.values()) for name, its in found.items()}


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print the tables."""
    how = f"temperature {report['temperature']:g}" if report["temperature"] else "greedy"
    about = (report["model"], how, f"{report['threads']} threads", report["machine"]["processor"])
    console.print(*about, sep=", ")
    heads = ("S", "slots", "tok/s", "× plain", "× transformers", "of floor", "first token", "own text", "16-bit text")
    table = Table("method", *heads)
    for name, method in report["methods"].items():
        row = method["overall"]
        intervals = row["intervals"]
        ratios = [_with(row.get(base), intervals.get(base), 2) for base in BASES]
        floor = _shown(row["share_of_floor"], 2)
        numbers = (f"{row['tokens_per_pass']:.2f}", f"{row['slots_per_pass']:.1f}")
        rate = _with(row["tokens_per_second"], intervals["tokens_per_second"], 1)
        same = [f"{row[text]} of {row['answers']}" for text in ("same_text_as_own_plain", "same_text")]
        table.add_row(name, *numbers, rate, *ratios, floor, f"{row['first_token_ms']:.0f} ms", *same)
    console.print(table)
    table = Table("compared", "ratio", "least kind")
    for one in report["comparisons"]:
        least = f"{_shown(one['least'], 2)} {one['least_kind']}"
        table.add_row(f"{one['method']} ÷ {one['base']}", _with(one["ratio"], one["interval"], 2), least)
    console.print(table)
    categories = list(next(iter(report["methods"].values()))["by_category"])
    table = Table("S, × plain", *categories)
    for name, method in report["methods"].items():
        rows = [method["by_category"][category] for category in categories]
        table.add_row(name, *(f"{row['tokens_per_pass']:.2f} {_shown(row['to_plain'], 2)}" for row in rows))
    console.print(table)
    for name, found in report["differences"].items():
        ties = sum(one["near_tie"] for one in found)
        console.print(f"{name}: {len(found)} texts differ from plain decoding, {ties} of them from a near tie on.")


def _with(value: float | None, interval: Sequence[float] | None, digits: int) -> str:
    ends = "" if interval is None else " ({}–{})".format(*(_shown(end, digits) for end in interval))
    return _shown(value, digits) + ends


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
