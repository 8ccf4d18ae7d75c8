"""The questions that `benchmarks.real` asks: which of a file, and as which tokens."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import AutoTokenizer

SEED = 0


@dataclass(frozen=True)
class Question:
    """A question of a benchmark."""

    id: int
    category: str
    text: str


def read_questions(path: Path) -> list[Question]:
    """The first turns of all questions of a file.

    Raises:
        ValueError: the file has another format.
    """
    try:
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return [Question(one["id"], one["category"], one["turns"][0]) for one in found]
    except (ValueError, LookupError, TypeError) as error:
        message = f"{path} is no file of questions: JSON objects with id, category and turns, one a line."
        raise ValueError(message) from error


def chosen(questions: Sequence[Question], ids: Sequence[int], per_category: int) -> list[Question]:
    """So many questions of each category: those that are asked for, then others by a seeded draw, the same every time.

    Raises:
        ValueError: there is no question of an id that is asked for, or none at all is chosen.
    """
    missing = set(ids) - {question.id for question in questions}
    if missing:
        raise ValueError(f"There is no question {min(missing)} in that file.")
    by_category: dict[str, list[Question]] = {}
    for question in questions:
        by_category.setdefault(question.category, []).append(question)
    found: list[Question] = []
    for category, its in by_category.items():
        wanted = [question for question in its if question.id in ids]
        others = [question for question in its if question.id not in ids]
        count = min(max(0, per_category - len(wanted)), len(others))
        found += [*wanted, *sorted(random.Random(f"{SEED} {category}").sample(others, count), key=lambda one: one.id)]
    if not found:
        raise ValueError("No question is chosen; give --ids, or a --per-category of at least 1.")
    return found


def others(questions: Sequence[Question], asked: Sequence[Question], count: int) -> list[Question]:
    """At most so many of the questions that are not asked, by a seeded draw, the same every time."""
    found = [question for question in questions if question not in asked]
    return random.Random(SEED).sample(found, min(count, len(found)))


def tokenized(model: Path, questions: Sequence[Question]) -> dict[int, list[int]]:
    """The prompts by the ids of the questions, as the model's chat template writes them."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    prompts: dict[int, list[int]] = {}
    for question in questions:
        messages = [{"role": "user", "content": question.text}]
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        prompts[question.id] = tokenizer(text, add_special_tokens=False).input_ids
    return prompts
