"""The examination of the bundled model asks what it says it asks, and its rules tell good answers from bad ones."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tools.demo_model.conversations import is_held_out
from tools.demo_model.dialogue import Exchange
from tools.demo_model.evaluation.questions import Question, normalised, questions
from tools.demo_model.evaluation.rules import RULES, failures

REVERSE = 'Here it is:\n```python\ndef turn(text):\n    """Turn."""\n    return text[::-1]\n```\nIt turns the text.'
LIST = "Here are three trees:\n1. Oak\n2. Pine\n3. Elm"

with (Path(__file__).parent / "ideal_answers.toml").open("rb") as _file:
    IDEAL: dict[str, str] = tomllib.load(_file)

# rule, its value, the answers before, an answer that passes, one that fails
CASES: list[tuple[str, Any, list[str], str, str]] = [
    ("mentions", ["pool|cache", "token"], [], "The POOL keeps tokens.", "The pool keeps words."),
    ("contains", ["QUIET RAIN"], [], "QUIET RAIN", "quiet rain"),
    ("never", ["needs a draft"], [], "It needs no draft model.", "It needs a draft model."),
    ("runs", ["turn('ab') == 'ba'"], [], REVERSE, REVERSE.replace("[::-1]", "[::2]")),
    ("runs", ["turn('ab') == 'ba'"], [], "def turn(text):\n    return text[::-1]", "I cannot write code."),
    ("runs", ["turn('ab') == 'ba'"], [], REVERSE, REVERSE.replace("turn(", "reverse(")),
    ("runs", ["turn('ab') == 'ba'"], [], REVERSE, REVERSE.replace("return", "while True: 0 #")),
    ("runs_any", ["'ab' -> 'ba'"], [], REVERSE, REVERSE.replace("text[::-1]", "text")),
    ("numbers", [3, 5, 1], [], "3, 4, 5.", "3, 4, 5, 6."),
    ("numbers", [5, 3, -1], [], "5, 4, 3.", "3, 4, 5."),
    ("items", {"count": 3, "of": "oak pine elm fir"}, [], LIST, LIST.replace("Elm", "Oak")),
    ("items", {"count": 3, "of": "oak pine elm fir"}, [], "Oak, pine and elm.", "Oak, pine and rose."),
    ("one_line_of_previous", True, [LIST], "Oak, pine, elm.", "Oak, pine."),
    ("one_line_of_previous", True, [LIST], "Oak, pine, elm.", LIST),
    ("nth_of_previous", 3, [LIST], "The third one is elm.", "The third one is pine."),
    ("sentences", 3, [], "One day. It rained! Why?", "It rained."),
    ("refuses", True, [], "I do not know anything about tax law.", "Tax law was invented in 1850."),
    ("refuses", False, [], "The mask says who sees whom.", "I do not know that."),
    ("shorter", True, ["A long answer."], "Short.", "A much longer answer than that."),
    ("differs", True, ["An answer."], "Another one.", "An answer."),
]


@pytest.mark.parametrize(("rule", "value", "before", "good", "bad"), CASES)
def test_a_rule_accepts_a_good_answer_and_no_bad_one(
    rule: str, value: object, before: list[str], good: str, bad: str
) -> None:
    assert failures({rule: value}, [*before, good], ended=True) == []
    assert failures({rule: value}, [*before, bad], ended=True) != []


def test_every_rule_is_tried() -> None:
    assert {rule for rule, *_ in CASES} == set(RULES)


def test_answers_that_go_on_for_ever_go_round_in_circles_or_are_empty_fail() -> None:
    assert failures({}, ["Good."], ended=False)
    assert failures({}, ["This is a sentence of its own. " * 3], ended=True)
    assert failures({}, ["  "], ended=True)
    assert not failures({}, ["This is a sentence of its own. And another one that is longer."], ended=True)


def test_there_are_enough_questions_of_ten_kinds_and_every_rule_they_name_exists() -> None:
    kinds = Counter(question.kind for question in questions())
    assert len(kinds) == 10 and min(kinds.values()) >= 6 and len(questions()) >= 60
    assert len({question.id for question in questions()}) == len(questions())
    assert all(question.rules and set(question.rules) <= set(RULES) for question in questions())


def of_the_guide() -> list[Question]:
    return [question for question in questions() if question.kind in ("guide", "app", "speed")]


@pytest.mark.parametrize("question", of_the_guide(), ids=lambda question: question.id)
def test_a_good_short_answer_passes_and_a_refusal_does_not(question: Question) -> None:
    assert failures(question.rules, [IDEAL[question.id]], ended=True) == []
    assert failures(question.rules, ["I do not know that."], ended=True) != []


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.id)
def test_what_is_asked_is_held_out_of_the_corpus(question: Question) -> None:
    assert is_held_out(Exchange(question.turns[-1].upper(), "Yes."))
    assert all(is_held_out(Exchange("What?", f"It is {string}.")) for string in question.held_out)


def test_questions_are_compared_without_case_and_punctuation() -> None:
    assert normalised("  What's a KV-cache?") == normalised("what s a kv cache")
