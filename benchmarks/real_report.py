"""The result of `benchmarks.real`: the figures of all methods, as a value for a file and as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.real_answers import Answers
from benchmarks.real_figures import Row, difference, figures, tie
from benchmarks.real_processes import Process
from benchmarks.real_questions import Question
from ladechat.bench.options import PLAIN, TRANSFORMERS

GENERATE = next(iter(TRANSFORMERS))


def make_report(
    answers: Answers,
    questions: Sequence[Question],
    prompts: Mapping[int, list[int]],
    processes: Mapping[str, Process],
) -> dict[str, Any]:
    """The figures of all methods, and all differences between texts, with what is to be said of them."""
    category = {question.id: question.category for question in questions}
    rows: dict[str, list[Row]] = {}
    for (_, asked), row in answers.rows.items():
        rows.setdefault(category[asked], []).append(row)
    names = list(next(iter(answers.rows.values())))
    methods: dict[str, Any] = {}
    for name in names:
        overall = figures(list(answers.rows.values()), name, PLAIN, GENERATE)
        by_category = {one: figures(its, name, PLAIN, GENERATE) for one, its in rows.items()}
        methods[name] = {"overall": overall, "by_category": by_category}
    different: dict[str, list[dict[str, Any]]] = {}
    for (_, asked), row in answers.rows.items():
        for name in names:
            found = difference(asked, row[name], row[PLAIN])
            if found is not None and all(one["question"] != asked for one in different.get(name, [])):
                text = [*prompts[asked], *row[PLAIN].tokens[: found.token]]
                both = (processes["this"].logits(text), processes["transformers"].logits(text))
                different.setdefault(name, []).append({**asdict(found), **tie(*both, found.tokens)})
    return {**answers.about, "methods": methods, "differences": different}


def show(report: Mapping[str, Any], console: Console) -> None:
    """Print the tables."""
    console.print(
        f"{report['model']}, {report['dtype']}, {report['threads']} threads, {report['machine']['processor']}"
    )
    table = Table("method", "S", "slots", "tok/s", "× plain", "× transformers", "first token", "same text")
    for name, method in report["methods"].items():
        row = method["overall"]
        numbers = (f"{row['tokens_per_pass']:.2f}", f"{row['slots_per_pass']:.1f}", _shown(row["tokens_per_second"], 1))
        ratios = (_shown(row["to_plain"], 2), _shown(row["to_transformers"], 2))
        same = f"{row['same_text']} of {row['answers']}"
        table.add_row(name, *numbers, *ratios, f"{row['first_token_ms']:.0f} ms", same)
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


def _shown(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
