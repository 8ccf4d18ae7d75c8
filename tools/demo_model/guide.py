"""Dialogues about parallel decoding and ladechat itself, from the facts in `guide_method.toml` and `guide_app.toml`.

An answer opens with the topic's definition and goes on with some of its facts, in their order. What follows stays with
the topic: "Why?", "An example?", "Shorter, please." and the like have answers of the topic's own, which name it.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tools.demo_model.dialogue import Exchange, as_typed, vary

GENERAL = (
    "What is {n}?",
    "What is {n}?",
    "What are {n}?",
    "Explain {n}.",
    "Can you explain {n}?",
    "Could you explain {n} to me?",
    "Tell me about {n}.",
    "Tell me something about {n}.",
    "Describe {n}.",
    "Please describe {n} in a few sentences.",
    "What do you know about {n}?",
    "I do not understand {n}.",
    "I don't understand {n}.",
    "Explain {n} in simple words.",
    "Explain {n} to a beginner.",
    "Give me a short overview of {n}.",
    "What exactly is {n}?",
    "Help me understand {n}.",
    "So what is {n}?",
    "How would you explain {n}?",
    "{n}?",
    "{n}",
    "I would like to know more about {n}.",
    "What is the idea of {n}?",
    "Teach me about {n}.",
    "What is meant by {n}?",
    "What does {n} mean?",
    "Hi, what is {n}?",
    "And what is {n}?",
    "Ok, and {n}?",
    "{n}, what is that?",
    "{n} - what is it?",
    "Explain {n}, please.",
    "Tell me what {n} does.",
    "What is {n} good for?",
    "What is {n} for?",
    "How does {n} work?",
    "Why {n}?",
    "What is the point of {n}?",
    "Do you know {n}?",
    "Do you know what {n} is?",
    "What do I need {n} for?",
    "I keep reading about {n}.",
    "What is this thing called {n}?",
    "I have never understood {n}.",
    "Where does {n} come in?",
    "Just tell me what {n} is.",
    "Remind me what {n} is.",
    "Can you remind me of {n}?",
    "What was {n} again?",
)
OPENINGS = ("", "", "", "", "", "", "", "", "Good question. ", "Sure. ")

WHY = (
    "Why?",
    "Why is that?",
    "Why so?",
    "But why?",
    "Why is it like that?",
    "And why?",
    "Can you say why?",
    "How come?",
)
EXAMPLE = (
    "An example?",
    "Can you give an example?",
    "Give me an example.",
    "For example?",
    "Please show an example.",
    "Do you have an example?",
    "Could you give me an example, please?",
    "Show me an example.",
    "Like what?",
)
SHORT = (
    "Shorter, please.",
    "Shorter.",
    "In one sentence?",
    "Say it in one sentence.",
    "Can you summarise that?",
    "Summarise it.",
    "In short?",
    "Briefly, please.",
    "Too long. Make it shorter.",
    "Can you make it shorter?",
    "tl;dr",
)
MORE = (
    "Tell me more.",
    "More, please.",
    "Can you say more?",
    "Go on.",
    "Please go on.",
    "Continue.",
    "Tell me more about that.",
    "What else?",
    "More details, please.",
    "Anything else?",
    "What else should I know?",
    "Interesting. And?",
)
SIMPLE = (
    "In other words?",
    "Can you say it in other words?",
    "Simpler, please.",
    "I don't get it.",
    "I do not understand.",
    "Explain it like I am five.",
    "Say it more simply.",
    "In simple words?",
    "What does that mean?",
    "Can you put it differently?",
)


@dataclass(frozen=True)
class Topic:
    """What is known about one thing. Sentences may hold groups of alternatives, see `vary`."""

    names: Sequence[str]
    questions: Sequence[str]
    facts: Sequence[str]
    more: Sequence[str]
    example: str
    why: str
    simple: str
    short: str
    details: Sequence[tuple[Sequence[str], str]]
    faster: str = ""
    """Why it saves time, where it does."""


def _load(name: str) -> dict[str, Any]:
    with (Path(__file__).parent / f"guide_{name}.toml").open("rb") as file:
        return tomllib.load(file)


def _topics() -> Iterator[Topic]:
    asked, details = _load("questions"), _load("details")
    for name, fields in {**_load("method"), **_load("app"), **_load("python")}.items():
        own = [(forms.split("|"), answer) for forms, answer in details.pop(name, {}).items()]
        yield Topic(**{**fields, "questions": fields["questions"] + asked.pop(name)}, details=own)
    if asked or details:
        raise ValueError(f"Nothing is told about {sorted([*asked, *details])}.")


TOPICS = tuple(_topics())


def write(rng: Random) -> list[Exchange]:
    """A question about one topic, and up to three that follow from the answers."""
    topic = rng.choice(TOPICS)
    if topic.details and rng.random() < 0.1:
        return [_detail(topic, rng.choice(topic.names), rng)]
    told, kept_back = _some_facts(topic, rng)
    dialogue = [_told(topic, told, rng)]
    follow_ups = (
        (WHY, topic.why),
        (EXAMPLE, topic.example),
        (SHORT, topic.short),
        (SIMPLE, topic.simple),
        (MORE, vary(" ".join([*topic.more, *kept_back[:2]]), rng)),
    )
    for forms, reply in rng.sample(follow_ups, rng.choice((0, 0, 1, 1, 1, 2, 2, 3))):
        dialogue.append(Exchange(as_typed(rng.choice(forms), rng), reply))
    if topic.details and rng.random() < 0.4:
        dialogue.insert(rng.randint(1, len(dialogue)), _detail(topic, "it", rng))
    return dialogue


def explanation(topic: Topic, rng: Random) -> list[Exchange]:
    """A question about the topic and its answer, without more."""
    return [_told(topic, _some_facts(topic, rng)[0], rng)]


def _told(topic: Topic, facts: Sequence[str], rng: Random) -> Exchange:
    return Exchange(_question(topic, rng), rng.choice(OPENINGS) + vary(" ".join(facts), rng))


def _detail(topic: Topic, name: str, rng: Random) -> Exchange:
    """A question about one side of the topic."""
    forms, answer = rng.choice(topic.details)
    return Exchange(as_typed(rng.choice(forms).replace("{it}", name), rng), answer)


def _question(topic: Topic, rng: Random) -> str:
    own = rng.random() < 0.7
    text = rng.choice(topic.questions) if own else rng.choice(GENERAL).replace("{n}", rng.choice(topic.names))
    return as_typed(text[:1].upper() + text[1:], rng)


def _some_facts(topic: Topic, rng: Random) -> tuple[list[str], list[str]]:
    """The facts of the first answer, and those that are left for "tell me more"."""
    count = min(len(topic.facts), rng.choice((3, 4, 4, 5, 5, 6)))
    chosen = {0, *rng.sample(range(1, len(topic.facts)), count - 1)} if len(topic.facts) > 1 else {0}
    told = [fact for index, fact in enumerate(topic.facts) if index in chosen]
    return told, [fact for index, fact in enumerate(topic.facts) if index not in chosen]
