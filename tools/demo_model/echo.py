"""Copying and rewriting what the user gives: the simplest use of n-grams from the prompt."""

from collections.abc import Callable, Sequence
from random import Random

from tools.demo_model import guide
from tools.demo_model.dialogue import Exchange, ask, capitalised, forms, numbered, read, vary
from tools.demo_model.words import ADJECTIVES, NOUNS, person

FORMS = forms("echo")
_read: dict[str, str] = read("echo")
VERBS = tuple(tuple(verb.split("-")) for verb in _read["verbs"].split())
WHERE, WHEN = (tuple(_read[name].strip().replace("\n", ";").split(";")) for name in ("where", "when"))
RARE = tuple(_read["rare"].split())
MACHINES = ("model", "program", "robot", "computer", "machine", "language model", "toy", "cat", "guest", "voice")
SAID = ("know it", "know that", "like it", "say so", "say it again", "am glad", "do not mind", "can count", "live here")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_PLAIN = tuple(one for one in ADJECTIVES if one[0] not in "aeiou" and one != "honest")


def sentence(rng: Random) -> str:
    """A plain sentence, often about somebody with a name, at times about the one who says it."""
    kind = rng.random()
    if kind < 0.12:
        return _about_oneself(rng)
    if kind < 0.2:
        return _recited(rng)
    return with_noun(rng, rng.choice(NOUNS))


def _about_oneself(rng: Random) -> str:
    """What somebody may say of himself, or to another."""
    if rng.random() < 0.3:
        return f"I am a {rng.choice(_PLAIN)} {rng.choice(MACHINES)} and I {rng.choice(SAID)}."
    who, verb = rng.choice((("I", "am"), ("I", "was"), ("you", "are"), ("we", "are"), ("it", "is"), ("this", "is")))
    one = f"a {rng.choice(_PLAIN)} {rng.choice(NOUNS)}"
    said = rng.choice((f"{who} {verb} {rng.choice(ADJECTIVES)}", f"{who} {verb} {one}"))
    and_then = rng.choice(
        (f" {rng.choice(WHERE)}", f" and I like {rng.choice(('it', 'that', one))}", f" {rng.choice(WHEN)}", "")
    )
    return f"{capitalised(said + and_then)}."


def _recited(rng: Random) -> str:
    """A sentence that the model knows by heart, with another end: to be copied all the same."""
    words = vary(rng.choice(rng.choice(guide.TOPICS).facts), rng).split()
    kept = " ".join(words[: rng.randint(2, 6)]).rstrip(",.:;")
    return f"{kept} {rng.choice(WHERE)}." if rng.random() < 0.5 else f"{kept} {' '.join(some_words(rng, 1, 4))}."


def with_noun(rng: Random, noun: str) -> str:
    """A plain sentence in which `noun` occurs once."""
    return _clause(rng, noun, rng.choice(VERBS)[rng.randint(0, 1)])


def _about(rng: Random, name: str) -> str:
    """A plain sentence about somebody of that name."""
    article = rng.choice(("the", "the", "a"))
    text = f"{name} {rng.choice(rng.choice(VERBS))} {article} {rng.choice(_PLAIN)} {rng.choice(NOUNS)}"
    return f"{text} {rng.choice(WHERE)}." if rng.random() < 0.4 else f"{text}."


def _clause(rng: Random, noun: str, verb: str) -> str:
    """A sentence about somebody who does `verb` with a `noun`, somewhere or some time."""
    other = _other(rng, noun)
    who = rng.choice((f"the {rng.choice(ADJECTIVES)} {other}", f"the {other}", person(rng), person(rng)))
    adjective = rng.choice(ADJECTIVES)
    article = "an" if adjective[0] in "aeiou" or adjective == "honest" else "a"
    what = rng.choice((f"the {noun}", f"{article} {adjective} {noun}", f"the {adjective} {noun}"))
    text = f"{who} {verb} {what}"
    if rng.random() < 0.5:
        text += f" {rng.choice(WHERE)}"
    if rng.random() < 0.35:
        text += f" {rng.choice(WHEN)}"
    return f"{capitalised(text)}."


def _other(rng: Random, noun: str) -> str:
    return rng.choice([one for one in (*rng.sample(NOUNS, 2), *rng.sample(RARE, 2)) if one != noun])


def some_words(rng: Random, least: int, most: int) -> list[str]:
    """Different words, some of them rare, some of them names."""
    words = rng.sample(NOUNS, 6) + rng.sample(RARE, 3) + ([person(rng)] if rng.random() < 0.15 else [])
    distinct = list(dict.fromkeys(words))
    return rng.sample(distinct, rng.randint(least, most))


def write(rng: Random) -> list[Exchange]:
    """A text to copy or to change, and at times another change."""
    return rng.choices(TASKS, WEIGHTS)[0](rng)


def _ask(rng: Random, wordings: Sequence[str], answer: str, **values: object) -> Exchange:
    """A task with the text in it, which has to stay as it is: so at most the first letter is typed small."""
    form = rng.choice(wordings)
    if rng.random() < 0.2:
        form = form[0].lower() + form[1:]
    return Exchange(form.format(**values), answer)


def repeated(rng: Random, then_capitals: float = 0.12) -> list[Exchange]:
    """Something to say again, and at times once more, or in other letters; in capitals as often as told."""
    kind = rng.random()
    if kind < 0.15:
        text = " ".join(some_words(rng, 2, 6))
    else:
        text = " ".join(sentence(rng) for _ in range(rng.choice((1, 1, 1, 2))))
    dialogue = [_ask(rng, FORMS.repeat, text, text=text)]
    after = rng.random()
    if after < then_capitals:
        dialogue.append(ask(rng, FORMS.then_capitals, text.upper()))
        if rng.random() < 0.4:
            dialogue.append(ask(rng, FORMS.then_small, text.lower()))
    elif after < then_capitals + 0.12:
        dialogue.append(ask(rng, FORMS.again, text))
    elif after < then_capitals + 0.2:
        dialogue.append(ask(rng, FORMS.then_small, text.lower()))
    return dialogue


def _capitals(rng: Random) -> list[Exchange]:
    text = sentence(rng).rstrip(".") if rng.random() < 0.5 else " ".join(some_words(rng, 1, 4))
    if rng.random() < 0.3:
        text = text.lower().replace("the ", f"{rng.choice(('my', 'our', 'your', 'his', 'her'))} ", 1)
    if rng.random() < 0.25:
        return [_ask(rng, FORMS.small, text.lower(), text=text.upper())]
    dialogue = [_ask(rng, FORMS.capitals, text.upper(), text=text)]
    if rng.random() < 0.15:
        dialogue.append(ask(rng, FORMS.then_small, text.lower()))
    return dialogue


def _spelled(rng: Random) -> list[Exchange]:
    (word,) = some_words(rng, 1, 1)
    return [_ask(rng, FORMS.spell, " ".join(word), word=word)]


def _times(rng: Random) -> list[Exchange]:
    word, n = " ".join(some_words(rng, 1, 1 if rng.random() < 0.7 else 2)), rng.randint(2, 6)
    dialogue = [_ask(rng, FORMS.times, " ".join([word] * n), word=word, n=rng.choice((n, NUMBERS[n])))]
    if rng.random() < 0.2:
        n = rng.randint(2, 6)
        dialogue.append(ask(rng, FORMS.then_times, " ".join([word] * n), n=NUMBERS[n]))
    return dialogue


def _replace(rng: Random) -> list[Exchange]:
    old, new, third = *rng.sample(NOUNS, 2), rng.choice(RARE)
    if rng.random() < 0.3:
        new, third = third, new
    if rng.random() < 0.3:
        old, new, third = (person(rng) for _ in range(3))
        text = _about(rng, old)
    else:
        text = with_noun(rng, old)
    while text.lower().count(old.lower()) != 1:
        text = with_noun(rng, old)
    dialogue = [_ask(rng, FORMS.replace, text.replace(old, new), old=old, new=new, text=text)]
    if rng.random() < 0.3:
        dialogue.append(ask(rng, FORMS.then_new, text.replace(old, third), new=third))
    return dialogue


def _numbered(rng: Random) -> list[Exchange]:
    words = some_words(rng, 3, 6)
    return [_ask(rng, FORMS.numbered, numbered(words), words=", ".join(words))]


def _sorted(rng: Random) -> list[Exchange]:
    words = some_words(rng, 3, 6)
    in_order = sorted(words, key=str.lower)
    dialogue = [_ask(rng, FORMS.sort, ", ".join(in_order), words=", ".join(words))]
    after = rng.random()
    if after < 0.12:
        dialogue.append(ask(rng, FORMS.then_backwards, ", ".join(in_order[::-1])))
    elif after < 0.24:
        dialogue.append(ask(rng, FORMS.then_list, numbered(in_order)))
    return dialogue


def _reversed(rng: Random) -> list[Exchange]:
    words = some_words(rng, 3, 6)
    kind = rng.random()
    if kind < 0.2:
        return [_ask(rng, FORMS.commas, ", ".join(words), words=" ".join(words))]
    between = ", " if kind < 0.6 else " "
    return [_ask(rng, FORMS.reverse, between.join(words[::-1]), words=between.join(words))]


def _one_word(rng: Random) -> list[Exchange]:
    text = sentence(rng)
    words = text.rstrip(".").split()
    kind = rng.random()
    if kind < 0.35:
        return [_ask(rng, FORMS.last, f"The last word is {words[-1]}.", text=text)]
    if kind < 0.65:
        return [_ask(rng, FORMS.first, f"The first word is {words[0]}.", text=text)]
    words = words[: rng.randint(2, 8)]
    return [_ask(rng, FORMS.how_many, f"There are {NUMBERS[len(words)]} words.", text=" ".join(words))]


def _tense(rng: Random) -> list[Exchange]:
    """The same sentence in the past, or as a question. Only forms that are simple."""
    noun = rng.choice(NOUNS)
    if rng.random() < 0.5:
        present, past = rng.choice(VERBS)
        text = _clause(rng, noun, present)
        return [_ask(rng, FORMS.to_past, text.replace(f" {present} ", f" {past} ", 1), text=text)]
    who = rng.choice((f"the {noun}", f"the {rng.choice(RARE)}", person(rng)))
    rest = rng.choice((rng.choice(ADJECTIVES), rng.choice(WHERE)))
    verb = rng.choice(("is", "was"))
    return [
        _ask(rng, FORMS.to_question, f"{verb.capitalize()} {who} {rest}?", text=f"{capitalised(who)} {verb} {rest}.")
    ]


def _without(rng: Random) -> list[Exchange]:
    words = some_words(rng, 3, 6)
    word = rng.choice(words)
    kept = [one for one in words if one != word]
    return [_ask(rng, FORMS.without, ", ".join(kept), word=word, text=", ".join(words))]


_WEIGHTED: dict[Callable[[Random], list[Exchange]], int] = {
    repeated: 6,
    _capitals: 9,
    _spelled: 2,
    _times: 2,
    _replace: 8,
    _numbered: 3,
    _sorted: 9,
    _reversed: 3,
    _one_word: 3,
    _tense: 2,
    _without: 1,
}
TASKS, WEIGHTS = tuple(_WEIGHTED), tuple(_WEIGHTED.values())
