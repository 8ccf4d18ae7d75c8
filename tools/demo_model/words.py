"""Words and names to put into texts: so many that they have to be copied from the question, not recited."""

import builtins
from keyword import iskeyword
from random import Random

from tools.demo_model.dialogue import read

_WORDS: dict[str, tuple[str, ...]] = {name: tuple(words.split()) for name, words in read("words").items()}

NOUNS, VERBS, ADJECTIVES = _WORDS["nouns"], _WORDS["verbs"], _WORDS["adjectives"]
DAYS, MONTHS = _WORDS["days"], _WORDS["months"]
THINGS, MOODS, WHO = _WORDS["things"], _WORDS["moods"], _WORDS["who"]

_ONSETS, _VOWELS, _MIDDLES = _WORDS["onsets"], _WORDS["vowels"], _WORDS["middles"]
_ENDS = ("", "", "", *_WORDS["ends"])


def invented(rng: Random) -> str:
    """A word that there is not."""
    inner = (rng.choice(_VOWELS) + rng.choice(_MIDDLES) for _ in range(rng.choice((0, 1, 1, 2))))
    return rng.choice(_ONSETS) + "".join(inner) + rng.choice(_VOWELS) + rng.choice(_ENDS)


def person(rng: Random) -> str:
    """A name: a common one, or one that nobody has heard before."""
    return rng.choice(_WORDS["names"]) if rng.random() < 0.4 else invented(rng).capitalize()


def somebody(rng: Random) -> str:
    """Who a story can be about: an animal, somebody with a trade, a thing that comes to life, or what nobody knows."""
    kind = rng.random()
    return rng.choice(WHO) if kind < 0.65 else rng.choice(NOUNS) if kind < 0.82 else invented(rng)


def several(rng: Random) -> str:
    """A word for many of something: in code, for a list."""
    word = f"{rng.choice((rng.choice(NOUNS), rng.choice(THINGS), invented(rng)))}s"
    return several(rng) if iskeyword(word) or hasattr(builtins, word) else word


def function_name(rng: Random) -> str:
    """A name for a function, of two or three words, one of which may be a word that there is not."""
    first = rng.choice(rng.choice((VERBS, VERBS, VERBS, ADJECTIVES, NOUNS)))
    second = rng.choice(NOUNS) if rng.random() < 0.55 else invented(rng)
    second += "s" if rng.random() < 0.4 else ""
    shape = rng.random()
    if shape < 0.16:
        return f"{first}_{rng.choice(('of', 'in', 'to', 'by', 'for', 'with', 'and', 'from', 'at'))}_{second}"
    if shape < 0.2:
        return f"is_{rng.choice(ADJECTIVES)}_{second}"
    if shape < 0.28:
        return f"{first}_{rng.choice(ADJECTIVES)}_{second}"
    return f"{first}_{second}"
