"""What the bundled model learns beside method, app and code: numbers, lists, stories, copying, and plain talk."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random

import pytest

from tools.demo_model import counting, echo, guide, lists, smalltalk, stories, words
from tools.demo_model.dialogue import Exchange

MANY = range(3000)


def dialogues(write: Callable[[Random], list[Exchange]]) -> Iterator[list[Exchange]]:
    for seed in MANY:
        yield write(Random(seed))


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def rows_of(answer: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in answer.splitlines()]


def items_of(answer: str) -> list[str]:
    found = re.findall(r"^(\d+)\. (.*)$", answer, re.MULTILINE)
    assert [int(number) for number, _ in found] == list(range(1, len(found) + 1))
    return [item for _, item in found]


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_every_row_of_numbers_goes_on_by_the_same_step() -> None:
    seen = Counter[int]()
    for dialogue in dialogues(counting.write):
        for exchange in dialogue:
            if re.fullmatch(r"\d+(, \d+){2,}\.", exchange.answer):
                told = numbers(exchange.answer)
                [step] = {after - before for before, after in pairwise(told)}
                seen[step] += 1
    assert {1, -1, 2, 5, 10} <= seen.keys()


def test_counting_begins_and_ends_where_it_was_told_to() -> None:
    seen = 0
    for dialogue in dialogues(counting.write):
        asked = re.search(r"from (\d+) (?:up )?to (\d+)", dialogue[0].question)
        if asked and re.fullmatch(r"[\d, ]+\.", dialogue[0].answer) and not re.search("even|odd", dialogue[0].question):
            seen += 1
            told = numbers(dialogue[0].answer)
            first, last = int(asked[1]), int(asked[2])
            assert told[0] == first
            assert abs(told[-1] - last) < abs(told[1] - told[0])
    assert seen > 300


def test_what_follows_a_row_is_made_of_that_row() -> None:
    seen = Counter[str]()
    for dialogue in dialogues(counting.write):
        if len(dialogue) < 2:
            continue
        before, after = (exchange.answer for exchange in dialogue[:2])
        question = dialogue[1].question.lower()
        if "backwards" in question:
            seen["backwards"] += 1
            assert after[:-1].split(", ") == before[:-1].split(", ")[::-1]
        elif any(form.rstrip("?.").lower() in question for form in counting.GO_ON) and ":" not in after:
            seen["go on"] += 1
            step = numbers(before)[1] - numbers(before)[0]
            assert numbers(after)[0] == numbers(before)[-1] + step
    assert min(seen["backwards"], seen["go on"]) > 30


def test_sums_products_and_tables_are_right() -> None:
    operations = {"+": int.__add__, "-": int.__sub__, "x": int.__mul__}
    seen = Counter[str]()
    for dialogue in dialogues(counting.write):
        for exchange in dialogue:
            for a, operation, b, result in re.findall(r"(\d+) ([-+x]) (\d+) = (\d+)", exchange.answer):
                seen[operation] += 1
                assert operations[operation](int(a), int(b)) == int(result)
            if exchange.answer.startswith("|"):
                heads, _, *rows = rows_of(exchange.answer)
                for row in rows:
                    number, *values = map(int, row)
                    expected = {"square": number**2, "cube": number**3, "double": 2 * number}
                    assert values == [expected[head] for head in heads[1:]]
    assert min(seen[operation] for operation in operations) > 50


def test_even_numbers_are_even_and_odd_ones_odd() -> None:
    for dialogue in dialogues(counting.write):
        for exchange in dialogue:
            kind = re.search(r"\b(even|odd)\b", exchange.question)
            if kind:
                assert {number % 2 for number in numbers(exchange.answer)} == {kind[1] == "odd"}


# --- lists ------------------------------------------------------------------------------------------------------------


def test_there_are_many_categories_with_enough_in_each() -> None:
    assert len(lists.THINGS) >= 50
    for name, things in lists.THINGS.items():
        assert len(things) == len(set(things)) >= 10, name


def test_a_list_has_the_number_asked_for_in_digits_or_in_words() -> None:
    seen = 0
    for dialogue in dialogues(lists.write):
        asked = re.search(
            rf"\b(\d+|{'|'.join(lists.NUMBERS)})\b", dialogue[0].question.lower().replace("one question", "")
        )
        if asked and dialogue[0].answer.startswith("Here are"):
            seen += 1
            count = int(asked[1]) if asked[1].isdigit() else lists.NUMBERS.index(asked[1])
            assert len(set(items_of(dialogue[0].answer))) == count
    assert seen > 1000


def test_more_means_others_and_fewer_means_the_first_ones() -> None:
    seen = Counter[str]()
    for dialogue in dialogues(lists.write):
        given: list[str] = []
        for exchange in dialogue:
            items = items_of(exchange.answer)
            if re.search(r"Here are \w+ more:", exchange.answer):
                seen["more"] += 1
                assert not set(items) & set(given)
            elif "first" in exchange.question.lower() and items:
                seen["fewer"] += 1
                assert items == given[: len(items)]
            given = given + items if "more:" in exchange.answer else items or given
    assert min(seen["more"], seen["fewer"]) > 50


def test_a_question_about_a_list_is_answered_from_it() -> None:
    seen = Counter[str]()
    for dialogue in dialogues(lists.write):
        items: list[str] = []
        for exchange in dialogue:
            items = items_of(exchange.answer) or items
            place = re.fullmatch(r"The (\w+) one is (.*)\.", exchange.answer)
            count = re.match(r"There are (\w+) .* in the list\.", exchange.answer)
            if place:
                seen["place"] += 1
                index = -1 if place[1] == "last" else lists.PLACES.index(place[1])
                assert items[index].lower() == place[2].lower()
            elif count:
                seen["count"] += 1
                assert count[1] in (str(len(items)), lists.NUMBERS[min(len(items), 10)])
            elif "alphabetical" in exchange.question.lower():
                seen["sorted"] += 1
                assert items == sorted(items, key=str.lower)
    assert min(seen["place"], seen["count"], seen["sorted"]) > 50


@pytest.mark.parametrize("table", lists.TABLES, ids=lambda table: table["things"])
def test_rows_of_tables_have_a_cell_for_each_head(table: dict[str, list[str]]) -> None:
    assert {len(row.split(", ")) for row in table["rows"]} == {len(table["heads"])}


# --- stories ----------------------------------------------------------------------------------------------------------


def test_there_are_many_plots_and_names() -> None:
    assert len(stories.PLOTS) >= 12
    assert len(set(stories.NAMES)) >= 150
    assert len({stories.name(Random(seed)) for seed in range(2000)}) > 800


def test_a_story_has_the_length_of_a_short_story() -> None:
    for dialogue in dialogues(stories.write):
        assert 45 <= len(dialogue[0].answer.split()) <= 95


def test_names_and_animals_that_are_prescribed_are_in_the_story() -> None:
    seen = 0
    for dialogue in dialogues(stories.write):
        question = re.sub(r"^[A-Z]\w+", "", dialogue[0].question)
        story = dialogue[0].answer
        for animal, called in re.findall(r"(\w+) (?:called|named|whose name is) ([A-Z]\w+)", question):
            seen += 1
            assert called in story
            assert animal in story or animal not in words.WHO
    assert seen > 1000


def test_whoever_is_named_in_an_answer_has_been_in_a_story() -> None:
    seen = 0
    for dialogue in dialogues(stories.write):
        told = dialogue[0].answer
        for exchange in dialogue[1:]:
            if len(exchange.answer.split()) > 45:
                told = exchange.answer
                continue
            seen += 1
            named = set(re.findall(r"\b[A-Z]\w+", exchange.answer)) - {
                "The",
                "In",
                "It",
                "They",
                "Both",
                "Small",
                "Sunday",
            }
            assert named <= set(re.findall(r"\w+", told)), exchange
    assert seen > 1500


@pytest.mark.parametrize("number", range(len(stories.PLOTS)))
def test_a_hero_is_the_same_he_or_she_all_through(number: int) -> None:
    plot = stories.PLOTS[number]
    text = " ".join([*plot.lines, plot.end, plot.short, *(part for pair in plot.asked for part in pair)])
    assert not re.search(r"(?<!\{)\b([Hh]e|[Ss]he|[Hh]is|[Hh]er|[Hh]im)\b", text), "written out, where a gap has to be"
    assert {"{A}", "{B}", "{thing}"} <= set(re.findall(r"\{\w+\}", " ".join(plot.lines)))
    assert len(plot.asked) >= 3


# --- copying ----------------------------------------------------------------------------------------------------------


def test_there_are_words_enough_to_copy() -> None:
    for kind in (echo.VERBS, echo.WHERE, echo.WHEN, echo.RARE, words.NOUNS, words.ADJECTIVES):
        assert len(set(kind)) == len(kind) >= 60


def given(question: str) -> str:
    """What stands after the first colon or within quotation marks."""
    quoted = re.search(r'"(.*)"', question)
    return quoted[1] if quoted else question.split(": ", 1)[-1]


@pytest.mark.parametrize(
    ("forms", "change"),
    [
        (echo.REPEAT, lambda text: text),
        (echo.CAPITALS, str.upper),
        (echo.SMALL, str.lower),
        (echo.SORT, lambda text: ", ".join(sorted(text.split(", "), key=str.lower))),
        (echo.NUMBERED, lambda text: echo.numbered(text.split(", "))),
    ],
    ids=["repeat", "capitals", "small", "sort", "list"],
)
def test_what_is_given_comes_back_as_asked(forms: Sequence[str], change: Callable[[str], str]) -> None:
    openings = tuple(form.split("{")[0].lower() for form in forms if ": {" in form)
    asked = [dialogue[0] for dialogue in dialogues(echo.write) if dialogue[0].question.lower().startswith(openings)]
    assert len(asked) > 50
    for exchange in asked:
        assert exchange.answer == change(given(exchange.question))


def test_a_word_is_replaced_and_the_rest_stays() -> None:
    seen = 0
    for dialogue in dialogues(echo.write):
        asked = re.match(r"[Rr]eplace (?:the word )?(\w+) (?:by|with) (\w+)(?: in)?: (.*)", dialogue[0].question)
        if asked:
            seen += 1
            assert dialogue[0].answer == asked[3].replace(asked[1], asked[2])
            assert dialogue[0].answer != asked[3]
    assert seen > 100


def test_said_again_is_the_same_and_in_capitals_large() -> None:
    for dialogue in dialogues(echo.write):
        for before, after in pairwise(dialogue):
            if "capital" in after.question:
                assert after.answer == before.answer.upper()
            elif "small letters" in after.question:
                assert after.answer == before.answer.lower()
            elif re.search(r"again|once more", after.question, re.IGNORECASE):
                assert after.answer == before.answer


def test_words_are_counted_rightly() -> None:
    counted = [one[0] for one in dialogues(echo.write) if re.fullmatch(r"There are \w+ words\.", one[0].answer)]
    assert len(counted) > 50
    for exchange in counted:
        text = re.split(r": |\? ", exchange.question, maxsplit=1)[1]
        assert exchange.answer == f"There are {echo.NUMBERS[len(text.split())]} words."


# --- plain talk and refusals ------------------------------------------------------------------------------------------


def test_there_are_many_subjects_to_refuse() -> None:
    assert len(smalltalk.SUBJECTS) >= 400
    assert len(smalltalk.REFUSAL["ask"]) >= 25
    assert len({smalltalk.made_subject(Random(seed)) for seed in range(2000)}) > 1500


def test_a_refusal_names_what_was_asked_for() -> None:
    """A question may be typed in a hurry, with a letter out of place: so a few do not hold the subject as it is."""
    named: list[bool] = []
    subjects = set()
    for dialogue in dialogues(smalltalk.write):
        for exchange in dialogue:
            refused = re.match(r"I do not know anything about (?:your )?(.*)\. I am a tiny model that", exchange.answer)
            if refused:
                subjects.add(refused[1])
                named.append(refused[1].lower() in exchange.question.lower())
    assert len(subjects) > 600
    assert sum(named) > 0.97 * len(named)


def test_what_follows_a_refusal_stays_with_it() -> None:
    seen = Counter[str]()
    for dialogue in dialogues(smalltalk.write):
        subject = ""
        for exchange in dialogue:
            refused = re.match(r"I do not know anything about (.*)\. I am a tiny model that", exchange.answer)
            if refused:
                subject = refused[1]
            elif exchange.answer.startswith("I am sorry, I do not know anything"):
                seen["sure"] += 1
                assert f"about {subject}." in exchange.answer
            elif exchange.answer in (smalltalk.REFUSAL["why_answer"], smalltalk.REFUSAL["who_answer"]):
                seen["why or who"] += 1
                assert "I do not know" in dialogue[0].answer
    assert min(seen["sure"], seen["why or who"]) > 30


def test_nothing_that_is_known_is_refused() -> None:
    known = {name.lower() for topic in guide.TOPICS for name in topic.names}
    known |= {f"the capital of {country}".lower() for country in lists.CAPITALS}
    subjects = {smalltalk.made_subject(Random(seed)).lower() for seed in range(3000)}
    assert not known & (subjects | {subject.lower() for subject in smalltalk.SUBJECTS})


def test_the_guide_is_not_asked_what_smalltalk_answers() -> None:
    asked = {question.lower() for talk in smalltalk.TALK for question in talk["ask"]}
    assert not asked & {question.lower() for topic in guide.TOPICS for question in topic.questions}


@pytest.mark.parametrize("talk", smalltalk.TALK, ids=lambda talk: talk["ask"][0])
def test_talk_has_questions_enough_and_short_answers(talk: dict[str, list[str]]) -> None:
    assert len(talk["ask"]) >= 4
    assert all(len(answer.split()) < 90 for answer in talk["answer"])
