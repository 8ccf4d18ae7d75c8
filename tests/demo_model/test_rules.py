"""The rules of the examination whose figures are on the bundled model's card: right answers pass, wrong ones do not."""

from typing import Any

import pytest

from tools.demo_model.evaluation.rules import RULES, in_order

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


def test_an_answer_has_to_end_to_say_something_and_not_to_go_round_in_circles() -> None:
    sentence = "The pool is full of n-grams. "
    assert in_order(sentence * 2, ended=True) is None
    assert in_order(sentence * 3, ended=True)
    assert in_order(sentence, ended=False)
    assert in_order("  ", ended=True)
