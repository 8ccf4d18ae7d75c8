"""The corpus: conversations of several stretches, each about one thing, without anything the examination asks."""

from collections.abc import Callable, Iterator, Mapping
from random import Random

from tools.demo_model import code, counting, echo, follow_ups, guide, lists, smalltalk, stories
from tools.demo_model.dialogue import Exchange
from tools.demo_model.evaluation.questions import held_out, normalised

Writer = Callable[[Random], list[Exchange]]

WRITERS: Mapping[str, tuple[Writer, float]] = {
    "guide": (guide.write, 28),
    "code": (code.write, 14),
    "stories": (stories.write, 13),
    "counting": (counting.write, 9),
    "lists": (lists.write, 9),
    "echo": (echo.write, 28),
    "smalltalk": (smalltalk.write, 10),
    "follow-ups": (follow_ups.write, 14),
}
"""Who writes, and how often: their shares."""


def conversations(seed: str, stretches: int) -> Iterator[list[Exchange]]:
    """Conversations without end, of 1 to `stretches` stretches each; the same ones for the same seed."""
    rng = Random(seed)
    writers = [writer for writer, _ in WRITERS.values()]
    weights = [weight for _, weight in WRITERS.values()]
    while True:
        length = rng.randint(1, stretches)
        yield [exchange for write in rng.choices(writers, weights, k=length) for exchange in _allowed(write, rng)]


def _allowed(write: Writer, rng: Random) -> list[Exchange]:
    """A stretch in which nothing occurs that the examination holds out."""
    while True:
        stretch = write(rng)
        if not any(is_held_out(exchange) for exchange in stretch):
            return stretch


def is_held_out(exchange: Exchange) -> bool:
    """Whether the question is one of the examination's, or a name, number or subject of it occurs."""
    strings, questions = held_out()
    if normalised(exchange.question) in questions:
        return True
    text = f"{exchange.question}\n{exchange.answer}".lower()
    return any(string in text for string in strings)
