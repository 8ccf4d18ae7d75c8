"""Copying and rewriting what the user gives: the simplest use of n-grams from the prompt."""

from collections.abc import Callable, Sequence
from random import Random

from tools.demo_model.dialogue import Exchange, as_typed, capitalised
from tools.demo_model.words import ADJECTIVES, DOES, NOUNS, person

WHERE = (
    "in the garden",
    "near the lake",
    "on the hill",
    "behind the house",
    "under the bridge",
    "at the station",
    "in the kitchen",
    "on the roof",
    "by the river",
    "in a small town",
    "at noon",
    "in the evening",
    "on Monday",
    "every day",
    "after school",
    "before lunch",
    "in winter",
    "without a word",
    "with a smile",
    "at home",
    "in the rain",
    "for a friend",
    "once a week",
    "in the dark",
    "all night",
    "today",
    "at the market",
    "on the beach",
    "last summer",
)
REPEAT = (
    "Repeat: {text}",
    "Repeat after me: {text}",
    "Say this: {text}",
    "Please repeat: {text}",
    "Repeat this sentence: {text}",
    "Write this again: {text}",
    "Echo: {text}",
    "Copy this: {text}",
    "Say: {text}",
    "Can you repeat this? {text}",
)
CAPITALS = (
    "Write in capital letters: {text}",
    "Write this in capitals: {text}",
    "In capital letters, please: {text}",
    "Make this upper case: {text}",
    "Put this into capital letters: {text}",
)
SMALL = ("Write in small letters: {text}", "Make this lower case: {text}")
TIMES = ("Say {word} {n} times.", "Write {word} {n} times.", "Repeat the word {word} {n} times.")
REPLACE = (
    "Replace {old} by {new}: {text}",
    "Replace {old} with {new} in: {text}",
    "Write {new} instead of {old}: {text}",
    "In this sentence, replace {old} by {new}: {text}",
    "Change {old} to {new}: {text}",
)
NUMBERED = (
    "Make a numbered list of: {words}",
    "Write these as a numbered list: {words}",
    "Make a list: {words}",
    "Turn this into a numbered list: {words}",
    "Number these: {words}",
)
SORT = (
    "Put these words into alphabetical order: {words}",
    "Sort these words: {words}",
    "Sort alphabetically: {words}",
    "Put in alphabetical order: {words}",
    "Alphabetical order, please: {words}",
)
REVERSE = (
    "Write these words in reverse order: {words}",
    "Reverse the order: {words}",
    "Say these words backwards: {words}",
    "Turn the order around: {words}",
)
COMMAS = ("Write with commas: {words}", "Put commas between these words: {words}")
LAST = ("What is the last word of: {text}", "What is the last word in this sentence? {text}")
FIRST = ("What is the first word of: {text}", "What is the first word in this sentence? {text}")
AGAIN = ("Again.", "Once more.", "Say it again.", "Again, please.", "Repeat it.")
THEN_CAPITALS = ("Now in capital letters.", "In capitals, please.", "And in capital letters?")
THEN_NEW = ("And with {new} instead?", "Now with {new}.", "The same with {new}, please.")


def sentence(rng: Random) -> str:
    """A plain sentence, often about somebody with a name."""
    return with_noun(rng, rng.choice(NOUNS))


def with_noun(rng: Random, noun: str) -> str:
    """A plain sentence in which `noun` occurs once."""
    who = rng.choice(
        (f"the {rng.choice(ADJECTIVES)} {_other(rng, noun)}", f"the {_other(rng, noun)}", person(rng), person(rng))
    )
    what = rng.choice((f"the {noun}", f"a {rng.choice(ADJECTIVES)} {noun}", f"the {rng.choice(ADJECTIVES)} {noun}"))
    text = f"{who} {rng.choice(DOES)} {what}"
    return capitalised(f"{text} {rng.choice(WHERE)}." if rng.random() < 0.7 else f"{text}.")


def _other(rng: Random, noun: str) -> str:
    return rng.choice([one for one in rng.sample(NOUNS, 3) if one != noun])


def write(rng: Random) -> list[Exchange]:
    """A text to copy or to change, and at times another change."""
    tasks: Sequence[Callable[[Random], list[Exchange]]] = (
        _repeat,
        _repeat,
        _capitals,
        _times,
        _replace,
        _replace,
        _numbered,
        _sorted,
        _sorted,
        _reversed,
        _one_word,
    )
    return rng.choice(tasks)(rng)


def _ask(rng: Random, forms: Sequence[str], answer: str, **values: object) -> Exchange:
    return Exchange(rng.choice(forms).format(**values), answer)


def _repeat(rng: Random) -> list[Exchange]:
    text = " ".join(sentence(rng) for _ in range(rng.choice((1, 1, 1, 2))))
    dialogue = [_ask(rng, REPEAT, text, text=text)]
    after = rng.random()
    if after < 0.15:
        dialogue.append(Exchange(as_typed(rng.choice(AGAIN), rng), text))
    elif after < 0.3:
        dialogue.append(Exchange(as_typed(rng.choice(THEN_CAPITALS), rng), text.upper()))
    return dialogue


def _capitals(rng: Random) -> list[Exchange]:
    text = sentence(rng).rstrip(".") if rng.random() < 0.5 else " ".join(rng.sample(NOUNS, rng.randint(1, 4)))
    if rng.random() < 0.8:
        return [_ask(rng, CAPITALS, text.upper(), text=text)]
    return [_ask(rng, SMALL, text.lower(), text=text.upper())]


def _times(rng: Random) -> list[Exchange]:
    word, (n, told) = (
        rng.choice(NOUNS),
        rng.choice(((2, "two"), (3, "three"), (4, "four"), (5, "five"), (3, "3"), (5, "5"))),
    )
    return [_ask(rng, TIMES, " ".join([word] * n), word=word, n=told)]


def _replace(rng: Random) -> list[Exchange]:
    old, new, third = rng.sample(NOUNS, 3)
    text = with_noun(rng, old)
    while text.lower().count(old) != 1:
        text = with_noun(rng, old)
    dialogue = [_ask(rng, REPLACE, text.replace(old, new), old=old, new=new, text=text)]
    if rng.random() < 0.25:
        dialogue.append(_ask(rng, THEN_NEW, text.replace(old, third), new=third))
    return dialogue


def _numbered(rng: Random) -> list[Exchange]:
    words = rng.sample(NOUNS, rng.randint(3, 6))
    answer = "\n".join(f"{place}. {capitalised(word)}" for place, word in enumerate(words, 1))
    return [_ask(rng, NUMBERED, answer, words=", ".join(words))]


def _sorted(rng: Random) -> list[Exchange]:
    words = rng.sample(NOUNS, rng.randint(3, 5))
    return [_ask(rng, SORT, ", ".join(sorted(words)), words=", ".join(words))]


def _reversed(rng: Random) -> list[Exchange]:
    words = rng.sample(NOUNS, rng.randint(3, 5))
    if rng.random() < 0.25:
        return [_ask(rng, COMMAS, ", ".join(words), words=" ".join(words))]
    return [_ask(rng, REVERSE, ", ".join(words[::-1]), words=", ".join(words))]


def _one_word(rng: Random) -> list[Exchange]:
    text = sentence(rng)
    words = text.rstrip(".").split()
    last = rng.random() < 0.5
    answer = f"The last word is {words[-1]}." if last else f"The first word is {words[0]}."
    return [_ask(rng, LAST if last else FIRST, answer, text=text)]
