"""Dialogues about parallel decoding and ladechat itself, from the facts in `guide_method.toml` and `guide_app.toml`.

An answer opens with the topic's definition and goes on with some of its facts, in their order. What follows stays with
the topic: "Why?", "An example?", "Shorter, please." and the like have answers of the topic's own, which name it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tools.demo_model.dialogue import Exchange, as_typed, ask, capitalised, forms, read, vary

FORMS = forms("guide")


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


def _topics() -> Iterator[Topic]:
    asked, details = read("guide_questions"), read("guide_details")
    for name, fields in {**read("guide_method"), **read("guide_app"), **read("guide_python")}.items():
        own = [(wordings.split("|"), answer) for wordings, answer in details.pop(name, {}).items()]
        yield Topic(**{**fields, "questions": fields["questions"] + asked.pop(name)}, details=own)
    if asked or details:
        raise ValueError(f"Nothing is told about {sorted([*asked, *details])}.")


TOPICS = tuple(_topics())
ASKED_ONCE_MORE = 40
"""So many wordings of a question about a topic make it come once more: each wording has to be heard."""
WEIGHTS = [1 + len(topic.questions) / ASKED_ONCE_MORE for topic in TOPICS]


def write(rng: Random) -> list[Exchange]:
    """A question about one topic, and up to three that follow from the answers."""
    [topic] = rng.choices(TOPICS, WEIGHTS)
    if topic.details and rng.random() < 0.1:
        return [_detail(topic, rng.choice(topic.names), rng)]
    told, kept_back = _some_facts(topic, rng)
    dialogue = [_told(topic, told, rng)]
    follow_ups = (
        (FORMS.why, topic.why),
        (FORMS.example, topic.example),
        (FORMS.short, topic.short),
        (FORMS.simple, topic.simple),
        (FORMS.more, vary(" ".join([*topic.more, *kept_back[:2]]), rng)),
    )
    for wordings, reply in rng.sample(follow_ups, rng.choice((0, 0, 1, 1, 1, 2, 2, 3))):
        dialogue.append(ask(rng, wordings, reply))
    if topic.details and rng.random() < 0.4:
        dialogue.insert(rng.randint(1, len(dialogue)), _detail(topic, "it", rng))
    return dialogue


def explanation(topic: Topic, rng: Random) -> list[Exchange]:
    """A question about the topic and its answer, without more."""
    return [_told(topic, _some_facts(topic, rng)[0], rng)]


def _told(topic: Topic, facts: Sequence[str], rng: Random) -> Exchange:
    return Exchange(_question(topic, rng), rng.choice(FORMS.openings) + vary(" ".join(facts), rng))


def _detail(topic: Topic, name: str, rng: Random) -> Exchange:
    """A question about one side of the topic."""
    wordings, answer = rng.choice(topic.details)
    return Exchange(as_typed(rng.choice(wordings).replace("{it}", name), rng), answer)


def _question(topic: Topic, rng: Random) -> str:
    own = rng.random() < 0.7
    text = rng.choice(topic.questions) if own else rng.choice(FORMS.general).replace("{n}", rng.choice(topic.names))
    return as_typed(capitalised(text), rng)


def _some_facts(topic: Topic, rng: Random) -> tuple[list[str], list[str]]:
    """The facts of the first answer, and those that are left for "tell me more"."""
    count = min(len(topic.facts), rng.choice((3, 4, 4, 5, 5, 6)))
    chosen = {0, *rng.sample(range(1, len(topic.facts)), count - 1)} if len(topic.facts) > 1 else {0}
    told = [fact for index, fact in enumerate(topic.facts) if index in chosen]
    return told, [fact for index, fact in enumerate(topic.facts) if index not in chosen]
