"""What a corpus consists of: exchanges of a question and an answer, and text that says one thing in several ways."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

FOLDER = Path(__file__).parent

# The innermost group that has an alternative in it. Braces without a bar, as in Python code, are left as they are.
_GROUP = re.compile(r"\{([^{}]*\|[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question of the user's and the assistant's answer to it, as plain text."""

    question: str
    answer: str


def read(name: str) -> dict[str, Any]:
    """Return what a TOML file below this folder has, such as `words` or `evaluation/items`."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def forms(module: str) -> SimpleNamespace:
    """Return the wordings that a module has in `forms.toml`, by their names."""
    return SimpleNamespace(**read("forms")[module])


FORMS = forms("dialogue")


def ask(rng: Random, wordings: Sequence[str], answer: str, **values: object) -> Exchange:
    """Return a question in one of these wordings, as somebody may type it, and its answer.

    `values` fill the gaps; one that begins the question gets a capital.
    """
    question = rng.choice(wordings)
    if values:
        begins_with_gap = question.startswith("{")
        question = question.format(**values)
        question = capitalised(question) if begins_with_gap else question
    return Exchange(as_typed(question, rng), answer)


def vary(text: str, rng: Random) -> str:
    """`text` with one alternative taken of every group `{a|b|c}`; groups may contain groups, and parts may be empty."""
    while group := _GROUP.search(text):
        text = text[: group.start()] + rng.choice(group[1].split("|")) + text[group.end() :]
    return text


def capitalised(text: str) -> str:
    """`text` with its first letter large and all others as they are."""
    return text[:1].upper() + text[1:]


def numbered(items: Iterable[str]) -> str:
    """Items, one a line."""
    return "\n".join(f"{place}. {item}" for place, item in enumerate(items, 1))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    first, *others = (f"| {' | '.join(map(str, cells))} |" for cells in (heads, *rows))
    return "\n".join([first, f"|{'---|' * len(heads)}", *others])


def as_typed(question: str, rng: Random) -> str:
    """`question` as somebody may type it: with a word before or after it, or in a hurry, with letters left out."""
    if rng.random() < 0.2:
        question = question.replace(*rng.choice(FORMS.shorter))
    if rng.random() < 0.15:
        before = rng.choice(FORMS.before)
        question = before + (question if before.endswith(". ") else question[:1].lower() + question[1:])
    if rng.random() < 0.06:
        question += rng.choice(FORMS.after)
    if rng.random() < 0.25:
        question = question[:1].lower() + question[1:]
    if rng.random() < 0.2:
        question = question.rstrip("?.!")
    if rng.random() < 0.05:
        question = _mistyped(question, rng)
    return question


def _mistyped(question: str, rng: Random) -> str:
    """The question with two small letters swapped or one left out, somewhere in a word of its own."""
    words = question.split(" ")
    place = rng.randrange(len(words))
    word = words[place]
    if len(word) < 5 or not word.isalpha() or not word.islower():
        return question
    at = rng.randrange(1, len(word) - 2)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    words[place] = swapped if rng.random() < 0.5 else word[:at] + word[at + 1 :]
    return " ".join(words)
