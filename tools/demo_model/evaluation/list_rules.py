"""Rules about numbers and lists: what is counted or listed, and in which order."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tools.demo_model.dialogue import read

LIST_MARK = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s+(?=\S)", re.MULTILINE)


def numbers(wanted: Mapping[str, int], answers: Sequence[str]) -> str | None:
    """The answer counts from `first` to `last` by `step`. Beside it, only these may be said."""
    first, last, step = wanted["first"], wanted["last"], wanted["step"]
    expected = list(range(first, last + (1 if step > 0 else -1), step))
    found = [int(number) for number in re.findall(r"\d+", LIST_MARK.sub("", answers[-1]))]
    for start in range(len(found) - len(expected) + 1):
        if found[start : start + len(expected)] == expected:
            beside = {*found[:start], *found[start + len(expected) :]} - {first, last, abs(step), len(expected)}
            return f"also has {sorted(beside)}" if beside else None
    return f"counts {found}"


def table(wanted: Mapping[str, int], answers: Sequence[str]) -> str | None:
    """The multiplication table of a number up to `to` times, as equations or as the results in a row."""
    of, to = wanted["of"], wanted["to"]
    rows = [
        tuple(map(int, row)) for row in re.findall(r"(\d+)\s*(?:[x×*·]|times)\s*(\d+)\s*(?:=|is)\s*(\d+)", answers[-1])
    ]
    if not rows:
        return numbers({"first": of, "last": of * to, "step": of}, answers)
    wrong = [row for row in rows if row[0] * row[1] != row[2]]
    missing = [time for time in range(1, to + 1) if not {(time, of), (of, time)} & {row[:2] for row in rows}]
    return f"miscalculates {wrong}, lacks {missing}" if wrong or missing else None


def items(wanted: Mapping[str, Any], answers: Sequence[str]) -> str | None:
    """The answer lists `count` different things of a category of items.toml."""
    listed = listed_in(answers[-1])
    singular = [_known(item, wanted["of"]) for item in listed]
    strange = [item for item, known in zip(listed, singular, strict=True) if known is None]
    if strange:
        return f"lists {strange}, no {wanted['of']}"
    if len(singular) != wanted["count"] or len(set(singular)) != len(singular):
        return f"lists {len(set(singular))} different of {len(singular)}: {listed}"
    return None


def of_first_list(_: bool, answers: Sequence[str]) -> str | None:
    """What the last answer lists was in the list of the first."""
    new = set(listed_in(answers[-1])) - set(listed_in(answers[0]))
    return f"adds {sorted(new)}" if new else None


def listed_in(answer: str) -> list[str]:
    """The items of a list with marks, or else of a line with commas; in small letters, without articles."""
    lines = [line[mark.end() :] for line in answer.splitlines() if (mark := LIST_MARK.match(line))]
    if not lines:
        line = re.split(r":\s" if re.search(r":\s", answer) else r"\b(?:are|is)\b", answer, maxsplit=1)[-1]
        first_sentence = re.split(r"[.!?](?:\s|\Z)", line.strip(), maxsplit=1)[0]
        lines = re.split(r",\s*(?:and\s+)?|\s+and\s+|\n", first_sentence)
    bare = [re.split(r" [–—-] |:|\(", line)[0].strip(" .,;*").lower() for line in lines]
    return [re.sub(r"^(?:an?|the)\s+", "", item) for item in bare if item]


def _known(item: str, category: str) -> str | None:
    """The singular under which items.toml has it; None if it has not."""
    endings = (("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("ves", "f"), ("mice", "mouse"), ("geese", "goose"))
    candidates = [item.removesuffix(ending) + singular for ending, singular in endings if item.endswith(ending)]
    return next((one for one in candidates if one in _categories()[category]), None)


@cache
def _categories() -> dict[str, frozenset[str]]:
    return {name: frozenset(" ".join(text.split()).split(", ")) for name, text in read("evaluation/items").items()}


def numbered(words: Sequence[str], answers: Sequence[str]) -> str | None:
    """The answer is a list of just these words, numbered from 1 in their order."""
    lines = re.findall(r"^\s*(\d+)[.)]\s*(.+?)[\s.,]*$", answers[-1], re.MULTILINE)
    found = [(int(number), word.lower()) for number, word in lines]
    return None if found == list(enumerate(words, start=1)) else f"numbers {found}"


def ordered(words: Sequence[str], answers: Sequence[str]) -> str | None:
    """The answer ends with these words in this order."""
    found = re.findall("|".join(rf"\b{word}\b" for word in words), answers[-1].lower())
    return None if found[-len(words) :] == list(words) else f"orders {found}"
