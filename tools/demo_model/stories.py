"""Short stories about two who have names, and questions about who is who."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.demo_model.dialogue import Exchange, as_typed
from tools.demo_model.words import MOODS, THINGS, WHO, person

PLACES = (
    "in a quiet forest",
    "near the sea",
    "on a small hill",
    "in a little village",
    "at the edge of a lake",
    "in an old tower",
    "behind the mountains",
    "on a green island",
    "by a deep river",
    "in a house of stone",
    "under a big oak",
    "in a busy town",
)
PRONOUNS = (("he", "him", "his"), ("she", "her", "her"))

ANY = (
    "Tell me a story.",
    "Tell me a short story.",
    "Write a short story.",
    "Can you tell a story?",
    "Make up a story.",
    "A story, please.",
)
ABOUT_ONE = (
    "Tell me a story about {a_hero}.",
    "Write a short story about {a_hero}.",
    "Tell me a short story about {a_hero}.",
    "Can you tell me a story about {a_hero}?",
    "A story about {a_hero}, please.",
    "Make up a story about {a_hero}.",
)
ABOUT_TWO = (
    "Tell me a story about {a_hero} and {a_friend}.",
    "Write a short story about {a_hero} and {a_friend}.",
    "Tell a story with {a_hero} and {a_friend}.",
)
WITH_THING = (" It should be about {a_thing}.", " There should be {a_thing} in it.")
NAME = (
    "What was the {a} called?",
    "What is the name of the {a}?",
    "What was the name of the {a}?",
    "What is the {a} called?",
)
WHO_WAS = ("Who was {A}?", "Who is {A}?", "Who was {A} again?")
ENOUGH = (
    "Shorter, please.",
    "In one sentence?",
    "In short?",
    "What is it about?",
    "Tell it shorter.",
    "Summarise the story.",
)
ANOTHER = ("Another one.", "Another story, please.", "One more.", "Tell me another one.")


@dataclass(frozen=True)
class Plot:
    """A story with gaps, questions that it answers, and all of it in one sentence."""

    lines: Sequence[str]
    asked: Sequence[Sequence[str]]
    short: str


with (Path(__file__).parent / "stories.toml").open("rb") as _file:
    PLOTS = [Plot(**fields) for fields in tomllib.load(_file)["plots"]]


def article(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def write(rng: Random) -> list[Exchange]:
    """A story, questions about it, and at times another one."""
    dialogue, slots, plot = _tell(rng, ABOUT_ONE)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2))):
        dialogue.append(_question(plot, slots, rng))
    if rng.random() < 0.1:
        dialogue += _tell(rng, ANOTHER)[0][:1]
    return dialogue


def _tell(rng: Random, forms: Sequence[str]) -> tuple[list[Exchange], dict[str, str], Plot]:
    """A story as asked for, with its names."""
    plot = rng.choice(PLOTS)
    hero, friend = rng.sample(WHO, 2)
    hero_name, friend_name = person(rng), person(rng)
    while friend_name == hero_name:
        friend_name = person(rng)
    he, him, his = rng.choice(PRONOUNS)
    thing = rng.choice(THINGS)
    slots = {
        "a": hero,
        "b": friend,
        "A": hero_name,
        "B": friend_name,
        "he": he,
        "He": he.capitalize(),
        "him": him,
        "his": his,
        "thing": thing,
        "place": rng.choice(PLACES),
        "adjective": rng.choice(MOODS),
    }
    question = rng.choice(ANY) if forms is ABOUT_ONE and rng.random() < 0.12 else _request(slots, forms, rng)
    return [Exchange(as_typed(question, rng), fill(" ".join(plot.lines), slots))], slots, plot


def _request(slots: dict[str, str], forms: Sequence[str], rng: Random) -> str:
    """A request that prescribes who is in the story, and at times the names."""
    called = rng.choice(("called", "called", "named"))
    hero, friend = article(slots["a"]), article(slots["b"])
    if rng.random() < 0.75:
        hero += f" {called} {slots['A']}"
    if forms is ABOUT_ONE and rng.random() < 0.45:
        forms = ABOUT_TWO
        if rng.random() < 0.75:
            friend += f" {called} {slots['B']}"
    question = rng.choice(forms).format(a_hero=hero, a_friend=friend)
    if rng.random() < 0.2:
        question += rng.choice(WITH_THING).format(a_thing=article(slots["thing"]))
    return question


def _question(plot: Plot, slots: dict[str, str], rng: Random) -> Exchange:
    kind = rng.random()
    if kind < 0.2:
        question, answer = rng.choice(NAME), "The {a} was called {A}."
    elif kind < 0.4:
        question, answer = rng.choice(NAME).replace("{a}", "{b}"), "The {b} was called {B}."
    elif kind < 0.5:
        question, answer = rng.choice(WHO_WAS), "{A} was the {a}."
    elif kind < 0.6:
        question, answer = rng.choice(WHO_WAS).replace("{A}", "{B}"), "{B} was the {b}."
    elif kind < 0.7:
        question, answer = rng.choice(ENOUGH), plot.short
    else:
        question, answer = rng.choice(plot.asked)
    return Exchange(as_typed(fill(question, slots), rng), fill(answer, slots))


def fill(text: str, slots: dict[str, str]) -> str:
    """`text` with its gaps filled, and with "an" where it has to be."""
    for name in ("thing", "adjective", "a", "b"):
        text = text.replace(f" a {{{name}}}", f" {article(slots[name])}").replace(
            f"A {{{name}}}", f"{article(slots[name]).capitalize()}"
        )
    for name, value in slots.items():
        text = text.replace(f"{{{name}}}", value)
    return text
