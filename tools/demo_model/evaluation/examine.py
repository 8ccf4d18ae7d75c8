"""Asks checkpoints the questions of the examination and scores the answers by the rules.

Run as `python -m tools.demo_model.evaluation.examine --model FOLDER [--model FOLDER] [--json FILE]`. Answers are
greedy, in float32, decoded by lookahead (W 5, N 3, G 5, the pool empty at each answer): the text is that of plain
decoding, and the steps tell how well each kind of text can be guessed.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ladechat.bench.machine import describe
from tools.demo_model.evaluation.questions import Question, questions
from tools.demo_model.evaluation.rules import failures
from tools.demo_model.evaluation.speaker import Reply, Speaker

ROOT = Path(__file__).parents[3]
RESULT = ROOT / "benchmarks" / "results" / "demo_examination.json"


@dataclass(frozen=True)
class Marked:
    """A question, its answers, and what is wrong with each of them; None for an answer that does not count."""

    question: Question
    replies: Sequence[Reply]
    wrong: Sequence[Sequence[str] | None]

    @property
    def score(self) -> float:
        """The share of the answers that count which are right."""
        counted = [wrong for wrong in self.wrong if wrong is not None]
        return sum(not wrong for wrong in counted) / len(counted)

    def as_row(self) -> dict[str, Any]:
        turns = zip(self.question.turns, self.replies, self.wrong, strict=True)
        return {
            "id": self.question.id,
            "kind": self.question.kind,
            "score": self.score,
            "turns": [{"asked": turn, **asdict(reply), "wrong": wrong} for turn, reply, wrong in turns],
        }


def examine(folder: Path) -> dict[str, Any]:
    """Ask a checkpoint all questions. Scores and tokens per step, by kind and overall, and every answer."""
    speaker = Speaker(folder)
    marked = [mark(one, list(speaker.converse(one.turns))) for one in questions()]
    kinds = dict.fromkeys(one.question.kind for one in marked)
    return {
        "overall": summary(marked),
        "kinds": {kind: summary([one for one in marked if one.question.kind == kind]) for kind in kinds},
        "answers": [one.as_row() for one in marked],
    }


def mark(question: Question, replies: Sequence[Reply]) -> Marked:
    """Score the last answer, and the first of two where it has rules of its own."""
    texts = [reply.text for reply in replies]
    wrong: list[list[str] | None] = [failures(question.rules, texts, replies[-1].ended)]
    if len(replies) == 2:
        wrong.insert(0, failures(question.first, texts[:1], replies[0].ended) if question.first else None)
    return Marked(question, replies, wrong)


def summary(marked: Sequence[Marked]) -> dict[str, Any]:
    """The mean score, how many questions are right in every answer, and tokens per step over all answers."""
    replies = [reply for one in marked for reply in one.replies]
    tokens, steps = sum(reply.tokens for reply in replies), sum(reply.steps for reply in replies)
    return {
        "questions": len(marked),
        "score": round(sum(one.score for one in marked) / len(marked), 3),
        "all_right": sum(one.score == 1 for one in marked),
        "tokens": tokens,
        "steps": steps,
        "tokens_per_step": round(tokens / steps, 3),
    }


def table(reports: Mapping[str, Mapping[str, Any]]) -> Table:
    """Scores and tokens per step (S) of checkpoints side by side; reports as `examine` gives them, by name."""
    shown = Table("kind", "questions", *(heading for name in reports for heading in (name, "S")))
    first = next(iter(reports.values()))
    for kind in [*first["kinds"], "overall"]:
        row = [report["overall"] if kind == "overall" else report["kinds"][kind] for report in reports.values()]
        figures = (figure for one in row for figure in (f"{one['score']:.0%}", f"{one['tokens_per_step']:.2f}"))
        shown.add_row(kind, str(row[0]["questions"]), *figures, end_section=kind == list(first["kinds"])[-1])
    return shown


def faults(name: str, report: Mapping[str, Any]) -> Table:
    """What was wrong, question by question."""
    shown = Table("question", "what is wrong", title=f"{name}: what was wrong", title_justify="left")
    for answer in report["answers"]:
        wrong = [f"{number}: {what}" for number, turn in enumerate(answer["turns"], 1) for what in turn["wrong"] or ()]
        if wrong:
            shown.add_row(answer["id"], "\n".join(wrong))
    return shown


def main() -> None:
    """Examine the checkpoints, print their scores side by side, and write every answer down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--model", type=Path, action="append", required=True, help="a checkpoint's folder; may be repeated"
    )
    parser.add_argument("--json", type=Path, default=RESULT, help="where scores and answers go")
    parser.add_argument("--faults", action="store_true", help="also print what was wrong with each answer")
    arguments = parser.parse_args()
    reports = {name_of(folder): examine(folder) for folder in arguments.model}
    console = Console(markup=False)
    console.print(table(reports))
    if arguments.faults:
        for name, report in reports.items():
            console.print(faults(name, report))
    arguments.json.write_text(
        json.dumps({"machine": describe(), "checkpoints": reports}, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )


def name_of(folder: Path) -> str:
    """A checkpoint's folder as a result may name it: from the root of the repository, or by its name alone."""
    whole = folder.resolve()
    return whole.relative_to(ROOT).as_posix() if whole.is_relative_to(ROOT) else whole.name


if __name__ == "__main__":
    main()
