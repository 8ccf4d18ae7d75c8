"""What visitors ask right after something else, where the words alone do not say what is meant.

"Why is that faster?" after an explanation is no complaint that it is not; a sentence to repeat that begins as the
introduction does is no request for the introduction; "why not?" after an answer needs no apology.
"""

from random import Random

from tools.demo_model import counting, echo, guide, lists, smalltalk
from tools.demo_model.dialogue import Exchange, as_typed, ask, forms

FORMS = forms("follow_ups")
NOTHING_REFUSED = "I do not know what you mean: that was my answer. Please ask me in other words."


def write(rng: Random) -> list[Exchange]:
    """Two to four turns of one of these kinds."""
    return rng.choices((_faster, _reading, _task_after_talk, lists.then_sorted, _why_not), (34, 16, 26, 14, 10))[0](rng)


def _faster(rng: Random) -> list[Exchange]:
    """An explanation, why that is faster, and what may follow, in any order."""
    quick = [topic for topic in guide.TOPICS if topic.faster]
    topic = quick[0] if rng.random() < 0.5 else rng.choice(quick)
    question = rng.choice(FORMS.faster).replace("{n}", rng.choice(topic.names))
    then = [
        ask(rng, guide.FORMS.example, topic.example),
        ask(rng, guide.FORMS.short, topic.short),
        ask(rng, FORMS.not_faster, " ".join(_no_gain().facts)),
        ask(rng, guide.FORMS.why, topic.why),
    ]
    return [
        *guide.explanation(topic, rng),
        Exchange(as_typed(question, rng), topic.faster),
        *rng.sample(then, rng.choice((0, 1, 1, 2))),
    ]


def _no_gain() -> guide.Topic:
    return next(topic for topic in guide.TOPICS if "no gain" in topic.names)


def _reading(rng: Random) -> list[Exchange]:
    """A figure from the panel, and at times why that is not enough."""
    tenths = rng.randint(10, 39)
    told = f"{tenths / 10:.1f}"
    meaning = f"It means that ten steps gave {tenths} tokens. Plain decoding gives ten, one for each step. "
    if tenths == 10:
        meaning = "It means that every step gave one token, as in plain decoding: no guess was right. "
    meaning += (
        "It shows how well the guesses work, but not what a step costs. For the real speed look at tokens per second."
    )
    dialogue = [Exchange(as_typed(rng.choice(FORMS.reading).replace("{x}", told), rng), meaning)]
    if tenths > 10 and rng.random() < 0.5:
        reason = (
            f"Because {told} tokens per step gain nothing if a step takes {told} times as long as a plain one. "
            "On a CPU every token in a pass costs time, so large values of W, N and G lose. "
            "The speed panel says what a pass costs."
        )
        dialogue.append(ask(rng, FORMS.not_faster, reason))
    return dialogue


def _task_after_talk(rng: Random) -> list[Exchange]:
    """Small talk or an explanation, and then a text to copy, which has nothing to do with it."""
    before = smalltalk.talk(rng) if rng.random() < 0.7 else guide.explanation(rng.choice(guide.TOPICS), rng)
    return [*before, *echo.repeated(rng, then_capitals=0.5)]


def _why_not(rng: Random) -> list[Exchange]:
    """An answer that refuses nothing and has no reason, and "why not?" all the same."""
    before = rng.choice((lists.pair, lists.pair, counting.write))(rng)
    return [*before, ask(rng, FORMS.why_not, NOTHING_REFUSED)]
