"""Rules about stories: whether the heroes that were asked for are there, and no others."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_NO_NAMES = """
    I I'm I'll I've I'd Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April
    May June July August September October November December Christmas Easter Mr Mrs Miss God OK Oh
"""
NO_NAMES = frozenset(_NO_NAMES.split())
"""Words with a capital that name nobody."""

VERBS = (
    "was|is|had|has|went|said|saw|found|took|gave|came|ran|sat|asked|looked|lived|wanted|liked|loved|walked|told|smiled|"
    "laughed|thought|knew|heard|made|could|did|would|got|put|felt|called|opened|carried|flew|swam|stood|helped|showed"
)
_OPENERS = """
    The A An One Once Then So But And Or He She It They We You This That These Those There Here What When Where
    Who Why How In On At By Of To From With Without For After Before Every Each All Both Nobody Everybody
    Everyone Nothing Something Somebody Someone No Not Now Soon Later Today Tonight Yesterday Tomorrow His Her
    Its Their My Your Our If As Because While Until Since Never Always Sometimes Two Three Four Five Rain Snow
    Night Morning Spring Summer Autumn Winter Friends Mother Father Another Neither Either Some Many Most Yes Up
    Down Out Inside Outside
"""
OPENERS = frozenset(_OPENERS.split())
"""Words that begin sentences about somebody who has been named before."""


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
