"""The answers that a run of `benchmarks.real` has so far, in a file: a run that was ended goes on."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.real_figures import Row
from ladechat.bench.methods import TimedAnswer


class Answers:
    """The answers so far, one line of a file for each question and round.

    Args:
        path: the file; a run of the same kind that was ended may have left it.
        about: what is measured; the first line of the file.

    Raises:
        ValueError: the file belongs to another run.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path, self.about = path, about
        self.rows: dict[tuple[int, int], Row] = {}
        """By round and id of the question."""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        if not lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(about) + "\n", encoding="utf-8")
        elif json.loads(lines[0]) != json.loads(json.dumps(about)):
            raise ValueError(f"{path} has the answers of another run; delete it, or give another --out.")
        for line in lines[1:]:
            saved = json.loads(line)
            answers = {name: {**one, "tokens": tuple(one["tokens"])} for name, one in saved["answers"].items()}
            self.rows[saved["round"], saved["question"]] = {name: TimedAnswer(**one) for name, one in answers.items()}

    def add(self, number: int, question: int, row: Row) -> None:
        """Keep what all methods have answered to a question."""
        self.rows[number, question] = row
        saved = {"round": number, "question": question, "answers": {name: asdict(one) for name, one in row.items()}}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(saved) + "\n")
