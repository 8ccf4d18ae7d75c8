"""What an answer is asked for. Every rule takes its value from questions.toml and the answers, and says what is wrong.

Patterns are regular expressions without case. "The answer" is the last one.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CODE_SECONDS = 5
LIMIT_TOKENS = 300

Rule = Callable[[Any, Sequence[str]], str | None]


def mentions(patterns: Sequence[str], answers: Sequence[str]) -> str | None:
    """Every one of these patterns occurs."""
    missing = [pattern for pattern in patterns if not re.search(pattern, answers[-1], re.IGNORECASE)]
    return f"does not mention {missing}" if missing else None


def contains(patterns: Sequence[str], answers: Sequence[str]) -> str | None:
    """Every one of these patterns occurs, letter for letter."""
    missing = [pattern for pattern in patterns if not re.search(pattern, answers[-1])]
    return f"does not contain {missing}" if missing else None


def never(patterns: Sequence[str], answers: Sequence[str]) -> str | None:
    """None of these patterns occurs: they contradict what is so."""
    found = [pattern for pattern in patterns if re.search(pattern, answers[-1], re.IGNORECASE)]
    return f"says {found}" if found else None


def runs(checks: Sequence[str], answers: Sequence[str]) -> str | None:
    """The code in the answer runs, and these expressions are true after it."""
    source = code_in(answers[-1])
    if source is None:
        return "has no code"
    return _failure(source, [f"assert {check}, {check!r}" for check in checks])


def runs_any(cases: Sequence[str], answers: Sequence[str]) -> str | None:
    """As `runs`, whatever the function is called: cases are written `argument -> result`."""
    source = code_in(answers[-1])
    name = re.search(r"def (\w+)\(", source or "")
    if source is None or name is None:
        return "has no function"
    pairs = [case.split(" -> ") for case in cases]
    return _failure(source, [f"assert {name[1]}({given}) == {result}" for given, result in pairs])


def code_in(answer: str) -> str | None:
    """The code of an answer: what is fenced, or else from the first `def` on."""
    fenced = re.search(r"```(?:python)?\n(.*?)(?:```|\Z)", answer, re.DOTALL)
    if fenced:
        return fenced[1]
    bare = re.search(r"^def .*", answer, re.DOTALL | re.MULTILINE)
    return bare[0] if bare else None


def _failure(source: str, checks: Sequence[str]) -> str | None:
    """What goes wrong when the code and then the checks run, in a process and a folder of their own."""
    program = "\n".join([source, *checks])
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", program], cwd=folder, capture_output=True, text=True, timeout=CODE_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"runs longer than {CODE_SECONDS} s"
    return None if done.returncode == 0 else f"fails: {done.stderr.strip().splitlines()[-1]}"


def numbers(limits: Sequence[int], answers: Sequence[str]) -> str | None:
    """The numbers of the answer are those from the first limit to the second, by the third, and no others."""
    first, last, step = limits
    expected = list(range(first, last + (1 if step > 0 else -1), step))
    found = [int(number) for number in re.findall(r"\d+", answers[-1])]
    return None if found == expected else f"counts {found}"


def items(wanted: Mapping[str, Any], answers: Sequence[str]) -> str | None:
    """The answer lists as many different items as wanted, all of a set of words."""
    listed = listed_in(answers[-1])
    known = set(wanted["of"].split())
    strange = [item for item in listed if item not in known]
    if strange:
        return f"lists {strange}"
    if len(set(listed)) != len(listed) or len(listed) != wanted["count"]:
        return f"lists {listed}"
    return None


def listed_in(answer: str) -> list[str]:
    """The items of a numbered or dashed list, or of a line with commas, in small letters."""
    lines = re.findall(r"^(?:\d+\.|[-*]) (.+)$", answer, re.MULTILINE)
    parts = lines or re.split(r",\s*(?:and )?|\band\b", answer.split(":")[-1])
    return [part.strip(" .").lower() for part in parts if part.strip(" .")]


def one_line_of_previous(_: bool, answers: Sequence[str]) -> str | None:
    """The answer has the items of the list before it, in one line."""
    before = listed_in(answers[-2])
    missing = [item for item in before if item not in answers[-1].lower()]
    if len(before) < 2 or missing:
        return f"lacks {missing or 'a list before it'}"
    return "is more than a line" if "\n" in answers[-1].strip() else None


def nth_of_previous(place: int, answers: Sequence[str]) -> str | None:
    """The answer names the item at this place of the list before it, and none of the others."""
    before = listed_in(answers[-2])
    if len(before) < place:
        return "has no list before it"
    named = [item for item in before if re.search(rf"\b{re.escape(item)}\b", answers[-1], re.IGNORECASE)]
    return None if named == [before[place - 1]] else f"names {named}"


def sentences(least: int, answers: Sequence[str]) -> str | None:
    """The answer has at least so many sentences."""
    count = len(re.findall(r"[.!?]+[\"”]?(?=\s|\Z)", answers[-1]))
    return None if count >= least else f"has {count} sentences"


def refuses(wanted: bool, answers: Sequence[str]) -> str | None:
    """The answer says that it does not know, or does not say so."""
    refused = re.search(
        r"(do not|don't|cannot|can't|only) (know|answer|help)|am sorry|outside of what", answers[-1], re.IGNORECASE
    )
    if bool(refused) == wanted:
        return None
    return "does not say that it does not know" if wanted else "refuses"


def shorter(_: bool, answers: Sequence[str]) -> str | None:
    """The answer is shorter than the one before."""
    return None if len(answers[-1]) < len(answers[-2]) else "is not shorter"


def differs(_: bool, answers: Sequence[str]) -> str | None:
    """The answer is another than the one before."""
    return "says the same again" if answers[-1].strip() == answers[-2].strip() else None


RULES: Mapping[str, Rule] = {
    rule.__name__: rule
    for rule in (
        mentions, contains, never, runs, runs_any, numbers, items, one_line_of_previous, nth_of_previous, sentences,
        refuses, shorter, differs,
    )
}  # fmt: skip


def in_order(answers: Sequence[str], ended: bool) -> str | None:
    """What every answer is asked for: it ends by itself, says something, and does not go round in circles."""
    if not ended:
        return f"does not end within {LIMIT_TOKENS} tokens"
    said = [line.strip() for line in re.split(r"(?<=[.!?])\s|\n", answers[-1]) if len(line.strip()) > 20]
    if not answers[-1].strip():
        return "is empty"
    return "says a sentence three times" if any(said.count(line) > 2 for line in said) else None


def failures(rules: Mapping[str, Any], answers: Sequence[str], ended: bool) -> list[str]:
    """All that is wrong with the last answer; nothing if it passes."""
    found = [in_order(answers, ended), *(RULES[name](value, answers) for name, value in rules.items())]
    return [what for what in found if what is not None]
