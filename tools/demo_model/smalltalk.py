"""Greetings, questions about the model, thanks, complaints, and plain refusals of what it does not know."""

from random import Random
from typing import Any

from tools.demo_model.dialogue import Exchange, as_typed, capitalised, read, vary
from tools.demo_model.words import ADJECTIVES, NOUNS, person

_read = read("smalltalk")


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";"))


TALK: list[dict[str, Any]] = _read["talk"]
AREAS = {area: _parts(subjects) for area, subjects in _read["subjects"].items()}
SUBJECTS = tuple(dict.fromkeys(subject for subjects in AREAS.values() for subject in subjects))
MADE: dict[str, str] = _read["made"]
PLACES, LANGUAGES = tuple(MADE["places"].split()), tuple(MADE["languages"].split())
REFUSAL: dict[str, Any] = _read["refusal"]

# What the guide does know something about must not be refused, not even in a made-up subject.
KNOWN = frozenset(("window", "key", "page", "paper", "branch", "tree", "class", "copy", "cable", "engine", "pilot"))
_UNKNOWN_NOUNS = tuple(noun for noun in NOUNS if noun not in KNOWN and not noun.endswith(("s", "sh", "ch", "x", "f")))
_SURNAME_ENDS = ("man", "son", "berg", "ski", "field", "well", "ton", "er", "sen", "ley", "ford", "stein", "ov", "ini")
_PLACE_ENDS = ("ia", "land", "burg", "ville", "stan", "ton", "ora", "mouth", "by", "grad")
IDEAS = next(talk["answer"][0] for talk in TALK if "What can you do?" in talk["ask"])


def write(rng: Random) -> list[Exchange]:
    """Something polite, or a question that cannot be answered and at most two more about that."""
    return talk(rng) if rng.random() < 0.4 else _refusal(rng)


def talk(rng: Random) -> list[Exchange]:
    """Something polite, and at times one more question about it."""
    about = rng.choice(TALK)
    dialogue = [Exchange(as_typed(rng.choice(about["ask"]), rng), vary(rng.choice(about["answer"]), rng))]
    if "then" in about and rng.random() < 0.45:
        forms, answer = rng.choice(about["then"])
        dialogue.append(Exchange(as_typed(rng.choice(forms.split("|")), rng), answer))
    return dialogue


def full_name(rng: Random) -> str:
    """First and last name of somebody who never lived, or whom the model would not know."""
    return f"{person(rng)} {_longer(person(rng), rng.choice(_SURNAME_ENDS))}"


def place(rng: Random) -> str:
    """A country or a town, every other one made up."""
    return rng.choice(PLACES) if rng.random() < 0.5 else _longer(person(rng), rng.choice(_PLACE_ENDS))


def _longer(name: str, end: str) -> str:
    """A name with an end that fits."""
    stem = name.rstrip("aeiou")
    return stem.rstrip(end[0]) + end


def made_subject(rng: Random) -> str:
    """A subject put together from parts, so that it can only be copied."""
    form = rng.choice(_parts(MADE[rng.choice(("of", "by", "things"))]))
    noun, adjective = rng.choice(_UNKNOWN_NOUNS), rng.choice(ADJECTIVES)
    article = f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
    values = {"{p}": place(rng), "{n}": full_name(rng), "{a}": adjective, " a {x}": f" {article}", "{x}": noun}
    for gap, value in values.items():
        form = form.replace(gap, value)
    return form


def _question_and_subject(rng: Random) -> tuple[str, str]:
    """A question with its subject: a well-known one, somebody, some place, or something made up."""
    kind = rng.random()
    if kind < 0.45:
        subject = rng.choice(rng.choice(list(AREAS.values())) if rng.random() < 0.4 else SUBJECTS)
        forms = REFUSAL["people_ask"] if subject in AREAS["people"] else REFUSAL["ask"]
    elif kind < 0.6:
        subject, forms = full_name(rng), REFUSAL["people_ask"]
    elif kind < 0.72:
        subject, forms = place(rng), REFUSAL["place_ask"]
    else:
        subject, forms = made_subject(rng), REFUSAL["ask"]
    return capitalised(rng.choice(forms).replace("{s}", subject)), subject


def refusal(subject: str, rng: Random) -> str:
    """The answer to a question about `subject`; without a name for it, if there is none."""
    answer: str = REFUSAL["answer"].replace("{s}", _as_you(subject)) if subject else REFUSAL["other_answer"]
    return answer.replace("{hint}", rng.choice(REFUSAL["hints"]))


def _refusal(rng: Random) -> list[Exchange]:
    """A refusal and what may follow: why, who knows, what then, really, and another subject."""
    kind = rng.random()
    if kind < 0.2:
        question, subject = _unnamed(rng), ""
    elif kind < 0.3:
        return [_translation(rng)]
    else:
        question, subject = _question_and_subject(rng)
    dialogue = [Exchange(as_typed(question, rng), refusal(subject, rng))]
    for about in rng.sample(("why", "who", "then", "sure", "again"), rng.choice((0, 0, 0, 1, 1, 2))):
        if about == "again":
            _, subject = _question_and_subject(rng)
            question = rng.choice(REFUSAL["again"]).replace("{s}", subject)
            dialogue.append(Exchange(as_typed(question, rng), refusal(subject, rng)))
        elif about == "then":
            dialogue.append(Exchange(as_typed(rng.choice(REFUSAL["then"]), rng), vary(IDEAS, rng)))
        elif about != "sure":
            dialogue.append(Exchange(as_typed(rng.choice(REFUSAL[about]), rng), REFUSAL[f"{about}_answer"]))
        elif subject:
            answer = REFUSAL["sure_answer"].replace("{s}", _as_you(subject))
            dialogue.append(Exchange(as_typed(rng.choice(REFUSAL["sure"]), rng), answer))
    return dialogue


def _unnamed(rng: Random) -> str:
    """A question whose subject has no name that could be said again, such as a sum of large numbers."""
    if rng.random() < 0.6:
        question: str = rng.choice(REFUSAL["other_ask"])
        return question
    form: str = rng.choice(REFUSAL["sums"])
    return form.format(i=rng.randint(100, 9999), j=rng.randint(21, 999), k=rng.randint(3, 19))


def _translation(rng: Random) -> Exchange:
    """Something to translate."""
    language, words = rng.choice(LANGUAGES), rng.choice(_parts(MADE["words"]))
    question = capitalised(rng.choice(REFUSAL["translate"]).replace("{l}", language).replace("{w}", words))
    return Exchange(as_typed(question, rng), refusal(language, rng))


def _as_you(subject: str) -> str:
    """A subject as somebody else says it: my dog is your dog."""
    return f"your {subject.removeprefix('my ')}" if subject.startswith("my ") else subject
