"""The questions of the examination, and what of them the corpus must not have. The corpus reads it: no torch here."""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tools.demo_model.dialogue import read

STOCK_TURN_WORDS = 4
"""Later turns of so few words ("Why?", "Tell me more.") are what everybody types: they stay in the corpus."""


@dataclass(frozen=True)
class Question:
    """What is asked, in one turn or two, and what the answers are asked for, by rule name: see `rules.py`.

    `rules` hold for the last answer. `first` hold for the first of two; if there are any, both answers count.
    """

    id: str
    kind: str
    turns: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    rules: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)


@cache
def questions() -> tuple[Question, ...]:
    """All of them, in their order, each with the rules of its kind."""
    data = read("evaluation/questions")
    return tuple(_question(entry, data["always"].get(entry["kind"], {})) for entry in data["questions"])


def _question(entry: dict[str, Any], always: dict[str, Any]) -> Question:
    given = {**always, **entry}
    if "never" in always:
        given["never"] = [*entry.get("never", []), *always["never"]]
    turns, held = tuple(given.pop("turns")), tuple(given.pop("held_out", ()))
    name, kind, first = given.pop("id"), given.pop("kind"), given.pop("first", {})
    return Question(name, kind, turns, held, rules=given, first=first)


@cache
def held_out() -> tuple[tuple[str, ...], frozenset[str]]:
    """Strings, in small letters, that must not occur in the corpus; and questions, normalised, that it must not ask."""
    strings = tuple(sorted({string.lower() for question in questions() for string in question.held_out}))
    asked = {question.turns[0] for question in questions()}
    later = {turn for question in questions() for turn in question.turns[1:]}
    asked |= {turn for turn in later if len(turn.split()) > STOCK_TURN_WORDS}
    return strings, frozenset(map(normalised, asked))


def normalised(question: str) -> str:
    """A question without case, punctuation and spare spaces."""
    return " ".join(re.sub(r"[^\w ]", " ", question.lower()).split())
