"""Lists of things, with as many items as asked for, and what can be asked of a list.

A category is listed in one order only: a tiny model that may continue with any item soon repeats one.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tools.demo_model.dialogue import Exchange, as_typed, capitalised

with (Path(__file__).parent / "lists.toml").open("rb") as _file:
    _read = tomllib.load(_file)

THINGS = {name: tuple(items.split(", ")) for name, items in _read["things"].items()}
ORDERED = {name: tuple(items.split(", ")) for name, items in _read["ordered"].items()}
CAPITALS: dict[str, str] = _read["capitals"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PLACES = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]

ASK = (
    "List {n} {things}.",
    "Name {n} {things}.",
    "Give me {n} {things}.",
    "Give me a list of {n} {things}.",
    "Can you list {n} {things}?",
    "Write a list of {n} {things}.",
    "I need {n} {things}.",
    "Tell me {n} {things}.",
    "Can you name {n} {things}?",
    "Please list {n} {things}.",
    "{n} {things}, please.",
    "{n} {things}",
    "Do you know {n} {things}?",
    "Could you give me {n} {things}?",
    "Think of {n} {things}.",
    "Write down {n} {things}.",
)
SOME = ("List some {things}.", "Name some {things}.", "Give me a list of {things}.", "Can you name a few {things}?")
ALL = (
    "List the {things}.",
    "What are the {things}?",
    "Name the {things}.",
    "Name all {things}.",
    "The {things}, please.",
    "{things}?",
    "Which {things} are there?",
    "Tell me the {things}.",
    "Do you know the {things}?",
    "I need the {things}.",
)
FEWER = ("Only the first {n}.", "Only {n}, please.", "The first {n} are enough.")
IN_A_LINE = ("In one line, please.", "Write them in one line.", "With commas, please.", "As a sentence?")
WHICH = ("What is the {place} one?", "Which one is the {place}?", "What was the {place} one?")
HOW_MANY = ("How many are there?", "How many is that?", "How many did you list?")
MORE = ("{n} more.", "{n} more, please.", "Give me {n} more.", "Another {n}, please.")
CAPITAL = (
    "What is the capital of {country}?",
    "Which city is the capital of {country}?",
    "Name the capital of {country}.",
)


def numbered(items: Sequence[str]) -> str:
    """Items, one a line."""
    return "\n".join(f"{place}. {capitalised(item)}" for place, item in enumerate(items, 1))


def line(items: Sequence[str]) -> str:
    """Items in one line."""
    return capitalised(", ".join(items)) + "."


def write(rng: Random) -> list[Exchange]:
    """A list and at most two requests that follow from it."""
    kind = rng.random()
    if kind < 0.07:
        country, city = rng.choice(list(CAPITALS.items()))
        question = as_typed(rng.choice(CAPITAL).format(country=country), rng)
        return [Exchange(question, f"The capital of {country} is {city}.")]
    if kind < 0.25:
        name, items = rng.choice(list(ORDERED.items()))
        answer = f"Here are the {name}:\n{numbered(items)}"
        dialogue, left = [Exchange(as_typed(capitalised(rng.choice(ALL).format(things=name)), rng), answer)], []
    else:
        name, whole = rng.choice(list(THINGS.items()))
        count = rng.randint(3, 10)
        items, left = whole[:count], list(whole[count:])
        told = rng.choice((str(count), NUMBERS[count]))
        question = rng.choice(ASK).format(n=told, things=name)
        if count == 5 and rng.random() < 0.4:
            question = rng.choice(SOME).format(things=name)
        answer = f"Here are {NUMBERS[count]} {name}:\n{numbered(items)}"
        dialogue = [Exchange(as_typed(capitalised(question), rng), answer)]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        dialogue.append(_follow_up(name, items, left, rng))
    return dialogue


def _follow_up(name: str, items: Sequence[str], left: Sequence[str], rng: Random) -> Exchange:
    """A question about the list that was given last."""
    kind = rng.choice(("fewer", "line", "which", "how many", "more"))
    if kind == "fewer" and len(items) > 3:
        count = rng.randint(2, len(items) - 1)
        question, answer = rng.choice(FEWER), numbered(items[:count])
        question = question.format(n=NUMBERS[count] if count <= 10 else count)
    elif kind == "line":
        question, answer = rng.choice(IN_A_LINE), line(items)
    elif kind == "which":
        place = rng.randrange(min(len(items), 10))
        question = rng.choice(WHICH).format(place=PLACES[place])
        answer = f"The {PLACES[place]} one is {items[place]}."
    elif kind == "more" and len(left) >= 2:
        count = rng.randint(2, min(4, len(left)))
        question = capitalised(rng.choice(MORE).format(n=NUMBERS[count]))
        answer = f"Here are {NUMBERS[count]} more:\n{numbered(left[:count])}"
    else:
        question, answer = rng.choice(HOW_MANY), f"There are {len(items)} {name} in the list."
    return Exchange(as_typed(question, rng), answer)
