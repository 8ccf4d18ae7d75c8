"""Conversations of several turns, by dice: they go on, are cut, edited, asked again, and left for another."""

import random
from collections.abc import Iterator
from typing import NamedTuple

CHANGES = ("goes on", "goes on", "asked again", "cut", "edited", "another")


class Turn(NamedTuple):
    """A prompt, and the answer to it."""

    prompt: list[int]
    answer: list[int]


def turns(seed: int, count: int = 8, words: int = 40, longest: int = 150) -> Iterator[Turn]:
    """Turns of a conversation over a few words, in which phrases come again."""
    dice, text, prompt = random.Random(seed), list[int](), list[int]()

    def more() -> list[int]:
        said: list[int] = []
        while len(said) < longest // 3 or (dice.random() < 0.9 and len(said) < longest):
            known = [*text, *said]
            start, copied = dice.randrange(len(known) + 1), dice.choice((0, 0, 0, 3, 9))
            said += [*known[start : start + copied], dice.randrange(words)]
        return said

    for _ in range(count):
        match dice.choice(CHANGES):
            case "goes on":
                prompt = [*text, *more()]
            case "asked again":
                prompt = prompt or more()
            case "cut":
                prompt = [*text[: dice.randint(0, len(text))], *more()[: dice.randint(1, 3)]]
            case "edited":
                at = dice.randint(0, len(text))
                prompt = [*text[:at], *more()[: dice.randint(1, 9)], *text[at + dice.randint(0, 9) :]]
            case _:
                prompt = more()
        answer = text[len(prompt) :] if dice.random() < 0.2 else []  # the same again
        answer = answer or more()
        text = [*prompt, *answer]
        yield Turn(prompt, answer)
