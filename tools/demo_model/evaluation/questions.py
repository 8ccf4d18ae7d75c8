"""The questions of the examination, and what of them the corpus must not have."""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Question:
    """What is asked, in one turn or several, and what the last answer is asked for, by rule name: see `rules.py`."""

    id: str
    kind: str
    turns: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    rules: dict[str, Any] = field(default_factory=dict)


@cache
def questions() -> tuple[Question, ...]:
    """All of them, in their order."""
    with (Path(__file__).parent / "questions.toml").open("rb") as file:
        entries = tomllib.load(file)["questions"]
    return tuple(
        Question(
            id=entry.pop("id"),
            kind=entry.pop("kind"),
            turns=tuple(entry.pop("turns")),
            held_out=tuple(entry.pop("held_out", ())),
            rules=entry,
        )
        for entry in entries
    )


@cache
def held_out() -> tuple[tuple[str, ...], frozenset[str]]:
    """Strings, in small letters, that must not occur in the corpus; and questions, normalised, that it must not ask.

    A question of several turns is held out by its last turn; those before it only lead there.
    """
    strings = tuple(string.lower() for question in questions() for string in question.held_out)
    return strings, frozenset(normalised(question.turns[-1]) for question in questions())


def normalised(question: str) -> str:
    """A question without case, punctuation and spare spaces."""
    return " ".join(re.sub(r"[^\w ]", " ", question.lower()).split())
