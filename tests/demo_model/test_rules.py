"""The examination's rules and questions: the right answer passes, the wrong one does not."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tools.demo_model.evaluation.questions import Question, held_out, normalised, questions
from tools.demo_model.evaluation.rules import RULES, failures, in_order

IDEAL: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "ideal_answers.toml").read_text(encoding="utf-8"))

STORY = "A fox called Anouk met a hen called Pelle. They were friends. Anouk ran. Pelle sang. All was well."
TABLE = "\n".join(f"{time} x 7 = {7 * time}" for time in range(1, 11))
WRONG_TABLE = TABLE.replace("= 49", "= 48")
CODE = "Here it is:\n```python\ndef double(x):\n    return 2 * x\n```\nIt doubles."

GOOD_AND_BAD: list[tuple[str, Any, list[str], list[str]]] = [
    ("mentions", ["pool", "guess|draft"], ["The pool gives drafts."], ["The pool is full."]),
    ("mentions", ["see"], ["It sees nothing."], ["It foresees nothing."]),
    ("mentions", ["--model"], ["Use --model here."], ["Use the model."]),
    ("never", ["needs a second model"], ["It never needs a second model."], ["It needs a second model."]),
    ("never", ["needs no training"], ["It needs training."], ["Hidden transfer needs no training."]),
    ("contains", ["RED HAT"], ["Here: RED HAT"], ["Red hat"]),
    ("sentences", 3, ["One. Two! Three?"], ["One. Two!"]),
    ("words", {"least": 2, "most": 3}, ["two words"], ["these are four words"]),
    ("refuses", True, ["I don't know that."], ["It was Louis."]),
    ("refuses", False, ["You cannot see it, but it is a window."], ["I cannot answer that."]),
    ("shorter", True, ["A long answer.", "Short."], ["Short.", "A long answer."]),
    ("differs", True, ["It is red.", "It is blue."], ["It is red.", "it is red."]),
    ("runs", ["double(2) == 4"], [CODE], [CODE.replace("2 * x", "x")]),
    ("runs", ["double(2) == 4"], [CODE], ["It doubles a number."]),
    ("runs", ["double(2) == 4"], [CODE], [CODE.replace("def double(x):", "def double(x)")]),
    ("runs_any", ["3 -> 6"], [CODE], [CODE.replace("2 * x", "3 * x")]),
    ("numbers", {"first": 3, "last": 6, "step": 1}, ["From 3 to 6: 3, 4, 5, 6."], ["3, 4, 5, 6, 7"]),
    ("numbers", {"first": 3, "last": 6, "step": 1}, ["1. 3\n2. 4\n3. 5\n4. 6"], ["3, 5, 6"]),
    ("numbers", {"first": 6, "last": 4, "step": -1}, ["6, 5, 4"], ["4, 5, 6"]),
    ("table", {"of": 7, "to": 10}, [TABLE], [WRONG_TABLE]),
    ("table", {"of": 7, "to": 3}, ["7, 14, 21"], ["7, 14, 22"]),
    ("items", {"count": 2, "of": "fruits"}, ["Two fruits are apples and pears."], ["Apples, apples."]),
    ("items", {"count": 2, "of": "fruits"}, ["- Apple\n- Pear"], ["- Apple\n- Hammer"]),
    ("items", {"count": 2, "of": "fruits"}, ["Here are two: fig, plum."], ["Fig, plum, pear."]),
    ("of_first_list", True, ["Fig, plum, pear.", "Plum and pear."], ["Fig, plum.", "Plum and apple."]),
    ("numbered", ["red", "blue"], ["1. Red\n2. Blue"], ["1. Blue\n2. Red"]),
    ("numbered", ["red", "blue"], ["1) red\n2) blue"], ["red, blue"]),
    ("ordered", ["ant", "bee"], ["Of bee and ant: ant, bee"], ["bee, ant"]),
    ("heroes", {"names": ["Anouk", "Pelle"]}, [STORY], [STORY.replace("Pelle sang", "Then Tom sang")]),
    ("heroes", {"names": ["Anouk"], "others": 1}, [STORY], [STORY.replace("Anouk", "Anna")]),
    ("name_from_first", True, [STORY, "It was Pelle."], [STORY, "The hen was called Tom."]),
]


@pytest.mark.parametrize(("name", "value", "good", "bad"), GOOD_AND_BAD)
def test_a_rule_lets_the_good_pass_and_not_the_bad(name: str, value: Any, good: list[str], bad: list[str]) -> None:
    assert RULES[name](value, good) is None
    assert RULES[name](value, bad)


def test_every_rule_is_tried() -> None:
    assert {name for name, *_ in GOOD_AND_BAD} == set(RULES)


def test_code_that_runs_for_ever_fails_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.demo_model.evaluation.code_rules.SECONDS", 0.5)
    assert "longer" in str(RULES["runs"](["True"], ["```python\ndef f():\n    pass\nwhile True:\n    f()\n```"]))


def test_an_answer_has_to_end_to_say_something_and_not_to_go_round_in_circles() -> None:
    sentence = "The pool is full of n-grams. "
    assert in_order(sentence * 2, ended=True) is None
    assert in_order(sentence * 3, ended=True)
    assert in_order(sentence, ended=False)
    assert in_order("  ", ended=True)


def test_there_are_ten_kinds_with_enough_questions_each() -> None:
    kinds = Counter(question.kind for question in questions())
    assert len(kinds) == 10
    assert min(kinds.values()) >= 8
    assert kinds["code"] >= 16
    assert len({question.id for question in questions()}) == len(questions()) >= 80


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.id)
def test_a_question_is_well_formed(question: Question) -> None:
    assert question.id.startswith(f"{question.kind}-")
    assert 1 <= len(question.turns) <= 2
    assert question.rules.keys() | question.first.keys() <= RULES.keys()
    assert question.rules
    assert not question.first or len(question.turns) == 2
    assert failures(question.rules, ["Mumble."] * len(question.turns)), "anything would pass"


@pytest.mark.parametrize("kind", ["guide", "app", "speed", "follow-ups"])
def test_an_ideal_answer_is_there_for_every_question_about_method_and_app(kind: str) -> None:
    assert {question.id for question in questions() if question.kind == kind} <= IDEAL.keys()


@pytest.mark.parametrize("question", [one for one in questions() if one.id in IDEAL], ids=lambda question: question.id)
def test_an_ideal_answer_passes(question: Question) -> None:
    answers = IDEAL[question.id]
    assert len(answers) == len(question.turns)
    assert failures(question.rules, answers) == []
    assert failures(question.first, answers[:1]) == []


@pytest.mark.parametrize("kind", ["guide", "app", "speed"])
def test_an_answer_to_another_question_rarely_passes(kind: str) -> None:
    """Each ideal answer against every other question of its kind: if many passed, the rules would ask for nothing."""
    asked = [question for question in questions() if question.kind == kind]
    tried = [(one, IDEAL[other.id]) for one in asked for other in asked if one is not other]
    passed = [one.id for one, answers in tried if not failures(one.rules, answers)]
    assert len(passed) < len(tried) * 0.2


def test_questions_and_what_they_hold_out_are_told_to_the_corpus() -> None:
    strings, asked = held_out()
    assert "count_plums" in strings
    assert all(string == string.lower() for string in strings)
    assert {normalised(question.turns[0]) for question in questions()} <= asked
    assert not {"why", "an example", "tell me more", "shorter please"} & asked


def test_a_string_that_is_held_out_belongs_to_its_question() -> None:
    for question in questions():
        names = [
            name for rules in (question.rules, question.first) for name in rules.get("heroes", {}).get("names", [])
        ]
        assert {name.lower() for name in names} <= {string.lower() for string in question.held_out}
