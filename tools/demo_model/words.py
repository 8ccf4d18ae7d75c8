"""Words and names to put into texts: so many that they have to be copied from the question, not recited."""

import tomllib
from pathlib import Path
from random import Random

with (Path(__file__).parent / "words.toml").open("rb") as _file:
    _WORDS: dict[str, tuple[str, ...]] = {name: tuple(words.split()) for name, words in tomllib.load(_file).items()}

NOUNS, VERBS, ADJECTIVES = _WORDS["nouns"], _WORDS["verbs"], _WORDS["adjectives"]
THINGS, MOODS, WHO, DOES = _WORDS["things"], _WORDS["moods"], _WORDS["who"], _WORDS["does"]

_ONSETS = ("b", "br", "d", "dr", "f", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "tr", "v", "w", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ee", "ia", "io")
_ENDS = ("", "", "", "n", "l", "r", "s", "x", "nk", "m", "ra", "lo", "ni", "ta", "vi")


def person(rng: Random) -> str:
    """A name: a common one, or one that nobody has heard before."""
    if rng.random() < 0.4:
        return rng.choice(_WORDS["names"])
    syllables = [rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(rng.choice((1, 2, 2)))]
    return ("".join(syllables) + rng.choice(_ENDS)).capitalize()


def function_name(rng: Random) -> str:
    """A name for a function, of two or three words, one of which may be a word that there is not."""
    first = rng.choice(rng.choice((VERBS, VERBS, VERBS, ADJECTIVES, NOUNS)))
    second = rng.choice(NOUNS) if rng.random() < 0.6 else person(rng).lower()
    second += "s" if rng.random() < 0.3 else ""
    shape = rng.random()
    if shape < 0.1:
        return f"{first}_{rng.choice(('of', 'in', 'to', 'by', 'for', 'with', 'and'))}_{second}"
    if shape < 0.15:
        return f"is_{rng.choice(ADJECTIVES)}_{second}"
    if shape < 0.22:
        return f"{first}_{rng.choice(ADJECTIVES)}_{second}"
    return f"{first}_{second}"
