"""The corpus of the bundled model says what is so, copies what it is given, and can be learnt from."""

import random
import re
from collections.abc import Iterator
from itertools import islice

import pytest

from ladechat.keys import APP_KEYS
from tools.demo_model import code, counting, echo, guide, lists, smalltalk, stories
from tools.demo_model.conversations import WRITERS, conversations, is_held_out
from tools.demo_model.dialogue import Exchange, as_typed, vary
from tools.demo_model.words import WHO, function_name, person

SEEDS = range(400)


def firsts(write: object, seeds: Iterator[int] | range = SEEDS) -> Iterator[list[Exchange]]:
    assert callable(write)
    for seed in seeds:
        yield write(random.Random(seed))


def test_groups_of_alternatives_are_resolved_and_other_braces_are_left() -> None:
    assert {vary("{a|b}{c|{d|}} {x}", random.Random(seed)) for seed in range(99)} == {
        "ac {x}", "ad {x}", "a {x}", "bc {x}", "bd {x}", "b {x}",
    }  # fmt: skip


def test_a_question_typed_in_a_hurry_is_still_the_question() -> None:
    typed = {as_typed("Why not?", random.Random(seed)) for seed in range(200)}
    assert all("why not" in one.lower() for one in typed)
    assert len(typed) > 20


def test_typing_errors_stay_within_long_small_words() -> None:
    question = "Write a function called keep_names that counts the Numbers."
    for seed in range(500):
        typed = as_typed(question, random.Random(seed))
        assert "keep_names" in typed and "Numbers" in typed


@pytest.mark.parametrize("kind", WRITERS)
def test_writers_repeat_themselves_for_the_same_seed_and_leave_no_gap_unfilled(kind: str) -> None:
    write, _ = WRITERS[kind]
    assert [write(random.Random(seed)) for seed in range(50)] == [write(random.Random(seed)) for seed in range(50)]
    for dialogue in firsts(write):
        assert 1 <= len(dialogue) <= 5
        for exchange in dialogue:
            assert exchange.question.strip() and exchange.answer.strip()
            if kind != "code":
                assert not re.search(r"\{\w*\}|\|[a-z]", exchange.question + exchange.answer), exchange


def code_of(answer: str) -> str:
    [source] = re.findall(r"```python\n(.*?)\n```", answer, re.DOTALL)
    return str(source)


@pytest.mark.parametrize("name", code.FAMILIES)
def test_every_function_runs_and_its_example_is_true(name: str) -> None:
    family = code.FAMILIES[name]
    for seed in range(5):
        dice = random.Random(seed)
        function = code.Function(family, function_name(dice), code.draw_k(family, dice))
        said = re.fullmatch(r"For example, (.*) returns (.*)\.", function.example())
        assert said is not None
        call, result = said.groups()
        scope: dict[str, object] = {}
        exec(function.source(), scope)
        assert eval(call, scope) == eval(result)


def test_code_answers_have_the_name_that_was_asked_for() -> None:
    asked = 0
    for dialogue in firsts(code.write):
        named = re.search(r"(?:called|named|function|[Cc]all it) (\w+_\w+)", dialogue[0].question)
        if named:
            asked += 1
            assert f"def {named[1]}(" in code_of(dialogue[0].answer)
    assert asked > len(SEEDS) / 3


def test_names_are_too_many_to_recite() -> None:
    dice = random.Random(0)
    assert len({function_name(dice) for _ in range(1000)}) > 900
    assert len({person(dice) for _ in range(1000)}) > 400


def test_lists_have_as_many_different_items_as_asked_for() -> None:
    for dialogue in firsts(lists.write):
        first = dialogue[0]
        counted = re.match(r"Here are (\w+) (.*):\n", first.answer)
        if not counted or counted[1] not in lists.NUMBERS:
            continue
        items = [line.split(". ", 1)[1] for line in first.answer.splitlines()[1:]]
        assert len(items) == len(set(items)) == lists.NUMBERS.index(counted[1])
        assert {item.lower() for item in items} <= {item.lower() for item in lists.THINGS[counted[2]]}


def test_counting_goes_from_the_one_number_to_the_other() -> None:
    seen = 0
    for dialogue in firsts(counting.write):
        asked = re.fullmatch(r"[Cc]ount (?:up )?from (\d+) (?:up )?to (\d+)\.?", dialogue[0].question)
        if asked:
            seen += 1
            a, b = int(asked[1]), int(asked[2])
            assert dialogue[0].answer == ", ".join(map(str, range(a, b + 1))) + "."
    assert seen > 2


def test_stories_keep_who_is_who() -> None:
    asked = 0
    for dialogue in firsts(stories.write):
        story = dialogue[0].answer
        for exchange in dialogue[1:]:
            called = re.fullmatch(r"The (\w+) was called (\w+)\.", exchange.answer)
            if called:
                asked += 1
                assert called[1] in story and called[2] in story
        named = re.findall(r"(\w+) (?:called|named) ([A-Z]\w+)", dialogue[0].question)
        assert all(name in story and (animal in story or animal not in WHO) for animal, name in named)
    assert asked > 50


def test_what_is_to_be_repeated_is_repeated() -> None:
    seen = 0
    for dialogue in firsts(echo.write):
        first = dialogue[0]
        given = re.fullmatch(r"Repeat(?: after me| this sentence)?: (.*)", first.question)
        if given:
            seen += 1
            assert first.answer == given[1]
    assert seen > 5


def test_what_is_not_known_is_refused_by_its_name() -> None:
    for subject in smalltalk.SUBJECTS:
        assert not any(subject.lower() in map(str.lower, topic.names) for topic in guide.TOPICS)
    refused = [one[0].answer for one in firsts(smalltalk.write) if one[0].answer.startswith("I do not know anything")]
    assert len(set(refused)) > 80


def test_the_guide_names_the_keys_as_they_are() -> None:
    """A key that the guide gives a meaning is bound in the app, and those it should know are all there."""
    told = " ".join(fact for topic in guide.TOPICS for fact in topic.facts)
    bound = {key.strip().lower() for binding in APP_KEYS for key in binding.key.split(",")}
    for key in re.findall(r"\bF\d+\b|\bCtrl\+[A-Z]\b", told):
        assert key.lower() in bound | {"ctrl+p"}
    assert {f"F{number}" for number in range(2, 9)} <= set(re.findall(r"F\d", told))


def test_conversations_repeat_themselves_for_the_same_seed_only() -> None:
    assert list(islice(conversations("a", 4), 5)) == list(islice(conversations("a", 4), 5))
    assert list(islice(conversations("a", 4), 5)) != list(islice(conversations("b", 4), 5))


def test_nothing_of_the_examination_is_in_the_corpus() -> None:
    for conversation in islice(conversations("look", 6), 300):
        assert not any(map(is_held_out, conversation))
