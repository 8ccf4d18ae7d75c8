"""What an answer is asked for.

A rule gets its value from questions.toml and the answers so far, of which it judges the last. It says what is wrong
with it; None if nothing is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tools.demo_model.evaluation import code_rules, list_rules, name_rules

LIMIT_TOKENS = 300

Rule = Callable[[Any, Sequence[str]], str | None]

NEGATION = re.compile(
    r"\b(no|not|never|nor|neither|without|nothing|none|cannot|instead of|unlike)\b|n['’]t\b", re.IGNORECASE
)
REFUSAL = re.compile(
    r"\b(do not|don['’]t|can ?not|can['’]t|am not able|am unable|never learn\w*|have not learn\w*|was not trained|"
    r"was never|no idea|know nothing|nothing about|only (know|answer|talk|help|speak)|sorry|outside( of)? what|"
    r"beyond what|not something I|too small (for|to))\b",
    re.IGNORECASE,
)
"""Generous: any way of saying that one does not know or cannot."""
EVASION = re.compile(
    r"\bI (do not|don['’]t|can ?not|can['’]t|could not|am not able to|am unable to) "
    r"(know|help|answer|say|tell|do|count)|"
    r"\bsorry\b|outside( of)? what I|I know nothing",
    re.IGNORECASE,
)
"""Strict: "you cannot" or "not only" is no refusal."""


def mentions(patterns: Sequence[str], answers: Sequence[str]) -> str | None:
    """Every one of these patterns occurs, from the beginning of a word."""
    missing = [pattern for pattern in patterns if not _find(pattern, answers[-1])]
    return f"does not mention {missing}" if missing else None


def never(patterns: Sequence[str], answers: Sequence[str]) -> str | None:
    """None of these patterns occurs, but for sentences with a negation beside it: "it never changes the text"."""
    said = []
    for sentence in sentences_of(answers[-1]):
        for pattern in patterns:
            found = _find(pattern, sentence)
            if found and not NEGATION.search(sentence[: found.start()] + " … " + sentence[found.end() :]):
                said.append(found[0])
    return f"says {said}" if said else None


def _find(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\w)(?:{pattern})", text, re.IGNORECASE | re.DOTALL)


def contains(strings: Sequence[str], answers: Sequence[str]) -> str | None:
    """Every one of these strings occurs, letter for letter but for line ends."""
    text = " ".join(answers[-1].split())
    missing = [string for string in strings if string not in text]
    return f"does not contain {missing}" if missing else None


def sentences(least: int, answers: Sequence[str]) -> str | None:
    """The answer has at least so many sentences."""
    count = len([sentence for sentence in sentences_of(answers[-1]) if re.search(r"[.!?]", sentence)])
    return None if count >= least else f"has {count} sentences"


def sentences_of(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [part.strip() for part in re.split(r"(?<=[.!?])[\"”’]?\s+|\n", text) if part.strip()]


def words(limits: Mapping[str, int], answers: Sequence[str]) -> str | None:
    """The answer has at least `least` words and at most `most`."""
    count = len(answers[-1].split())
    return None if limits.get("least", 0) <= count <= limits.get("most", count) else f"has {count} words"


def refuses(wanted: bool, answers: Sequence[str]) -> str | None:
    """The answer says that it does not know or cannot; or, if that is not wanted, does not say so."""
    if wanted:
        return None if REFUSAL.search(answers[-1]) else "does not say that it does not know"
    return "refuses" if EVASION.search(answers[-1]) else None


def shorter(_: bool, answers: Sequence[str]) -> str | None:
    """The answer is shorter than the one before."""
    return None if len(answers[-1]) < len(answers[-2]) else "is not shorter"


def differs(_: bool, answers: Sequence[str]) -> str | None:
    """The answer is another than the one before."""
    last, before = ([sentence.lower() for sentence in sentences_of(answer)] for answer in (answers[-1], answers[-2]))
    return "says the same again" if last == before else None


RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        mentions, never, contains, sentences, words, refuses, shorter, differs,
        code_rules.runs, code_rules.runs_any,
        list_rules.numbers, list_rules.table, list_rules.items, list_rules.of_first_list,
        list_rules.numbered, list_rules.ordered,
        name_rules.heroes, name_rules.name_from_first,
    )
}  # fmt: skip


def in_order(answer: str, ended: bool) -> str | None:
    """What every answer is asked for: it ends by itself, says something, and does not go round in circles."""
    if not ended:
        return f"does not end within {LIMIT_TOKENS} tokens"
    said = [sentence for sentence in sentences_of(answer) if len(sentence) > 20]
    if not answer.strip():
        return "is empty"
    return "says a sentence three times" if any(said.count(sentence) > 2 for sentence in said) else None


def failures(rules: Mapping[str, Any], answers: Sequence[str], ended: bool = True) -> list[str]:
    """All that is wrong with the last of these answers; nothing if it passes."""
    found = [in_order(answers[-1], ended), *(RULES[name](value, answers) for name, value in rules.items())]
    return [what for what in found if what is not None]
