"""Short stories about two who have names, and questions about who is who."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tools.demo_model.dialogue import Exchange, as_typed, forms, read, vary
from tools.demo_model.words import MOODS, THINGS, WHO, person, somebody

FORMS = forms("stories")
HE, SHE = ("he", "him", "his"), ("she", "her", "her")


@dataclass(frozen=True)
class Plot:
    """A story with gaps, questions that it answers, and all of it in one sentence."""

    lines: Sequence[str]
    asked: Sequence[Sequence[str]]
    end: str
    short: str


_read = read("stories")
PLOTS, PLACES = [Plot(**fields) for fields in _read["plots"]], _read["places"]
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
    dialogue, slots, plot = _tell(rng, FORMS.about_one)
    answers = set()
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2))):
        exchange = _question(plot, slots, rng)
        if exchange.answer not in answers:
            dialogue.append(exchange)
            answers.add(exchange.answer)
    if rng.random() < 0.15:
        another, slots, plot = _tell(rng, rng.choice((FORMS.another, FORMS.another_with, FORMS.another_with)))
        dialogue += another
        if len(dialogue) < 4 and rng.random() < 0.5:
            dialogue.append(_question(plot, slots, rng, ("who", "both", "end", "asked")))
    return dialogue


def _tell(rng: Random, wordings: Sequence[str]) -> tuple[list[Exchange], dict[str, str], Plot]:
    """A story as asked for, with its names. Only what the request prescribes is ever unheard of."""
    plot = rng.choice(PLOTS)
    told = _prescribed(rng, wordings)
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
    return (
        [Exchange(as_typed(_request(slots, told, wordings, rng), rng), fill(" ".join(plot.lines), slots))],
        slots,
        plot,
    )


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


def _prescribed(rng: Random, wordings: Sequence[str]) -> str:
    """What the request says: who the hero (a) and the friend (b) are, and what they are called (A, B)."""
    if wordings is FORMS.another or (wordings is FORMS.about_one and rng.random() < 0.12):
        return ""
    told = "aA" if rng.random() < 0.75 else "a"
    if wordings is FORMS.about_one and rng.random() < 0.45:
        told += "bB" if rng.random() < 0.75 else "b"
    return told


def _request(slots: dict[str, str], told: str, wordings: Sequence[str], rng: Random) -> str:
    """A request that prescribes what it is told to, and at times a thing."""
    if not told:
        any_story: str = rng.choice(FORMS.another if wordings is FORMS.another else FORMS.any)
        return any_story
    called = rng.choice(FORMS.named)
    hero, friend = article(slots["a"]), article(slots["b"])
    if "A" in told:
        hero = called.format(one=hero, animal=slots["a"], name=slots["A"])
    if "B" in told:
        friend = called.format(one=friend, animal=slots["b"], name=slots["B"])
    question: str = rng.choice(FORMS.about_two if "b" in told else wordings).format(a_hero=hero, a_friend=friend)
    if rng.random() < 0.2:
        question += rng.choice(FORMS.with_thing).format(a_thing=article(slots["thing"]))
    return question


WHO_IS_WHO = {
    "name": (FORMS.name, "The {a} was called {A}."),
    "who": (FORMS.who_was, "{A} was the {a}."),
    "kind": (FORMS.kind, "{A} was the {a}."),
    "both": (FORMS.both, "The {a} was called {A}, and the {b} was called {B}."),
}
KINDS = {"name": 35, "who": 15, "kind": 4, "both": 5, "short": 9, "end": 7, "asked": 25}
"""Kinds of questions, and how often each is asked."""


def _question(plot: Plot, slots: dict[str, str], rng: Random, kinds: Sequence[str] = tuple(KINDS)) -> Exchange:
    """Something that can be answered from the story: who is who, what happened, how it ended."""
    kind = rng.choices(kinds, [KINDS[one] for one in kinds])[0]
    if kind == "asked":
        question, answer = rng.choice(plot.asked)
    else:
        told = {"short": (FORMS.enough, plot.short), "end": (FORMS.end, plot.end)}
        wordings, answer = told.get(kind) or WHO_IS_WHO[kind]
        question = rng.choice(wordings)
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
