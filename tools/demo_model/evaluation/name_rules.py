"""Rules about stories: whether the heroes that were asked for are there, and no others."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tools.demo_model.dialogue import read

_WORDS = {name: words.split() for name, words in read("evaluation/names").items()}
NO_NAMES, OPENERS, VERBS = frozenset(_WORDS["no_names"]), frozenset(_WORDS["openers"]), "|".join(_WORDS["verbs"])


def heroes(wanted: Mapping[str, Any], answers: Sequence[str]) -> str | None:
    """Every one of `names` occurs, and at most `others` (none, if not said) are named beside them."""
    names = set(wanted["names"])
    missing = sorted(name for name in names if not re.search(rf"\b{name}\b", answers[-1]))
    if missing:
        return f"does not name {missing}"
    others = named_in(answers[-1]) - names
    return f"invents {sorted(others)}" if len(others) > wanted.get("others", 0) else None


def name_from_first(_: bool, answers: Sequence[str]) -> str | None:
    """The last answer gives a name, and only such as the first one has."""
    told = named_in(answers[0])
    given = {name for name in told if re.search(rf"\b{name}\b", answers[-1])}
    if not given:
        return f"gives none of the names {sorted(told)}"
    others = named_in(answers[-1]) - told
    return f"gives {sorted(others)}, who is not in the story" if others else None


def named_in(text: str) -> set[str]:
    """Whom a text names: what has a capital within a sentence, or at its beginning and then does something."""
    word = r"([A-Z][a-z'’]+|[A-Z])(?:['’]s)?\b"
    within = re.findall(rf"(?<![.!?:\"“”‘])(?<!\A)[ ]{word}", text)
    beginning = re.findall(rf"(?:\A|[.!?:\"“”‘]\s+|\n\s*|[\"“‘]){word} (?:{VERBS})\b", text)
    possible = {*within, *(name for name in beginning if name not in OPENERS)}
    return {re.sub(r"['’]s$", "", name) for name in possible} - NO_NAMES - {"A"}
