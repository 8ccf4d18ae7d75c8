"""Short stories about two who have names, and questions about who is who."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tools.demo_model.dialogue import Exchange, as_typed, vary
from tools.demo_model.words import MOODS, THINGS, WHO, person, somebody

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
    "beside a little bridge",
    "on a long beach",
    "in an old mill",
    "near a cold spring",
    "at the foot of a mountain",
    "in a green valley",
    "behind the old school",
    "near the harbour",
    "in a garden full of roses",
    "on a farm",
    "by a round pond",
    "in a wooden hut",
    "at the end of the road",
    "near a white castle",
    "in a dark cave",
    "at the old station",
)
HE, SHE = ("he", "him", "his"), ("she", "her", "her")

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
    "Tell me a little story about {a_hero}.",
    "I want to hear a story about {a_hero}.",
    "Write a bedtime story about {a_hero}.",
    "A short story with {a_hero}, please.",
)
ABOUT_TWO = (
    "Tell me a story about {a_hero} and {a_friend}.",
    "Write a short story about {a_hero} and {a_friend}.",
    "Tell a story with {a_hero} and {a_friend}.",
)
NAMED = (
    "{one} called {name}",
    "{one} called {name}",
    "{one} named {name}",
    "{one} whose name is {name}",
    "{name}, {one}",
    "{name} the {animal}",
)
WITH_THING = (" It should be about {a_thing}.", " There should be {a_thing} in it.")
ANOTHER_WITH = (
    "Another one with {a_hero}.",
    "Now one about {a_hero}.",
    "Another one about {a_hero}, please.",
    "And one with {a_hero}?",
    "Tell me another one with {a_hero}.",
)
NAME = (
    "What was the {a} called?",
    "What is the name of the {a}?",
    "What was the name of the {a}?",
    "What is the {a} called?",
    "Who was the {a}?",
    "Who is the {a} in the story?",
    "Which of the two was the {a}?",
)
KIND = ("What kind of animal was {A}?", "What was {A}?", "What is {A}?", "Was {A} a {a}?", "What animal is {A}?")
BOTH = ("What are their names?", "What were the two called?", "Who is in the story?", "Name the two.")
WHO_WAS = ("Who was {A}?", "Who is {A}?", "Who was {A} again?")
ENOUGH = (
    "Shorter, please.",
    "In one sentence?",
    "In short?",
    "What is it about?",
    "Tell it shorter.",
    "Summarise the story.",
)
END = (
    "What happened in the end?",
    "How does the story end?",
    "How does it end?",
    "And in the end?",
    "What happened at the end?",
)
ANOTHER = ("Another one.", "Another story, please.", "One more.", "Tell me another one.")


@dataclass(frozen=True)
class Plot:
    """A story with gaps, questions that it answers, and all of it in one sentence."""

    lines: Sequence[str]
    asked: Sequence[Sequence[str]]
    end: str
    short: str


with (Path(__file__).parent / "stories.toml").open("rb") as _file:
    _read: dict[str, Any] = tomllib.load(_file)

PLOTS = [Plot(**fields) for fields in _read["plots"]]
NAMES, MEN, WOMEN = (tuple[str, ...](_read[of].split()) for of in ("names", "men", "women"))
_BEGIN, _MIDDLE, _END = (tuple[str, ...](_read[of].split()) for of in ("begin", "middle", "end"))


def article(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeio' or noun in ('honest', 'umbrella') else 'a'} {noun}"


def name(rng: Random) -> str:
    """A name for somebody: half of them made up, so that they must be copied from the question."""
    if rng.random() < 0.3:
        return rng.choice(NAMES)
    if rng.random() < 0.3:
        return (rng.choice(_BEGIN) + rng.choice(_MIDDLE) + rng.choice(_END)).capitalize()
    return person(rng)


def _pronouns(hero: str, called: str) -> tuple[str, str, str]:
    """What the hero is called in later sentences. A queen is a she; otherwise it depends on the name."""
    if hero in MEN + WOMEN:
        return HE if hero in MEN else SHE
    return SHE if called in WOMEN or (called.endswith(("a", "y")) and called not in MEN) else HE


def write(rng: Random) -> list[Exchange]:
    """A story, questions about it, and at times another one."""
    dialogue, slots, plot = _tell(rng, ABOUT_ONE)
    answers = set()
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2))):
        exchange = _question(plot, slots, rng)
        if exchange.answer not in answers:
            dialogue.append(exchange)
            answers.add(exchange.answer)
    if rng.random() < 0.15:
        another, slots, plot = _tell(rng, rng.choice((ANOTHER, ANOTHER_WITH, ANOTHER_WITH)))
        dialogue += another
        if len(dialogue) < 4 and rng.random() < 0.5:
            dialogue.append(_question(plot, slots, rng, ("who", "both", "end", "asked")))
    return dialogue


def _tell(rng: Random, forms: Sequence[str]) -> tuple[list[Exchange], dict[str, str], Plot]:
    """A story as asked for, with its names. Only what the request prescribes is ever unheard of."""
    plot = rng.choice(PLOTS)
    told = _prescribed(rng, forms)
    hero, friend = _two(rng, *((somebody if gap in told else _anybody) for gap in "ab"))
    hero_name, friend_name = _two(rng, *((name if gap in told else _common_name) for gap in "AB"))
    he, him, his = _pronouns(hero, hero_name)
    slots = {
        "a": hero,
        "b": friend,
        "A": hero_name,
        "B": friend_name,
        "he": he,
        "He": he.capitalize(),
        "him": him,
        "his": his,
        "thing": rng.choice(THINGS),
        "place": rng.choice(PLACES),
        "adjective": rng.choice(MOODS),
    }
    return [Exchange(as_typed(_request(slots, told, forms, rng), rng), fill(" ".join(plot.lines), slots))], slots, plot


def _anybody(rng: Random) -> str:
    return rng.choice(WHO)


def _common_name(rng: Random) -> str:
    return rng.choice(NAMES)


def _two(rng: Random, first: Callable[[Random], str], second: Callable[[Random], str]) -> tuple[str, str]:
    """Two that differ."""
    one = first(rng)
    other = second(rng)
    while other == one:
        other = second(rng)
    return one, other


def _prescribed(rng: Random, forms: Sequence[str]) -> str:
    """What the request says: who the hero (a) and the friend (b) are, and what they are called (A, B)."""
    if forms is ANOTHER or (forms is ABOUT_ONE and rng.random() < 0.12):
        return ""
    told = "aA" if rng.random() < 0.75 else "a"
    if forms is ABOUT_ONE and rng.random() < 0.45:
        told += "bB" if rng.random() < 0.75 else "b"
    return told


def _request(slots: dict[str, str], told: str, forms: Sequence[str], rng: Random) -> str:
    """A request that prescribes what it is told to, and at times a thing."""
    if not told:
        return rng.choice(ANOTHER if forms is ANOTHER else ANY)
    called = rng.choice(NAMED)
    hero, friend = article(slots["a"]), article(slots["b"])
    if "A" in told:
        hero = called.format(one=hero, animal=slots["a"], name=slots["A"])
    if "B" in told:
        friend = called.format(one=friend, animal=slots["b"], name=slots["B"])
    question = rng.choice(ABOUT_TWO if "b" in told else forms).format(a_hero=hero, a_friend=friend)
    if rng.random() < 0.2:
        question += rng.choice(WITH_THING).format(a_thing=article(slots["thing"]))
    return question


KINDS = {"name": 35, "who": 15, "kind": 4, "both": 5, "short": 9, "end": 7, "asked": 25}
"""Kinds of questions, and how often each is asked."""


def _question(plot: Plot, slots: dict[str, str], rng: Random, kinds: Sequence[str] = tuple(KINDS)) -> Exchange:
    """Something that can be answered from the story: who is who, what happened, how it ended."""
    kind = rng.choices(kinds, [KINDS[one] for one in kinds])[0]
    if kind == "name":
        question, answer = rng.choice(NAME), "The {a} was called {A}."
    elif kind == "who":
        question, answer = rng.choice(WHO_WAS), "{A} was the {a}."
    elif kind == "kind":
        question, answer = rng.choice(KIND), "{A} was the {a}."
    elif kind == "both":
        question, answer = rng.choice(BOTH), "The {a} was called {A}, and the {b} was called {B}."
    elif kind == "short":
        question, answer = rng.choice(ENOUGH), plot.short
    elif kind == "end":
        question, answer = rng.choice(END), plot.end
    else:
        question, answer = rng.choice(plot.asked)
    if kind in ("name", "who", "kind") and rng.random() < 0.5:
        slots = {**slots, "a": slots["b"], "A": slots["B"]}
    return Exchange(as_typed(vary(fill(question, slots), rng), rng), fill(answer, slots))


def fill(text: str, slots: dict[str, str]) -> str:
    """`text` with its gaps filled, and with "an" where it has to be."""
    for gap in ("thing", "adjective", "a", "b"):
        text = text.replace(f" a {{{gap}}}", f" {article(slots[gap])}")
        text = text.replace(f"A {{{gap}}}", f"{article(slots[gap]).capitalize()}")
    for gap, value in slots.items():
        text = text.replace(f"{{{gap}}}", value)
    return text
