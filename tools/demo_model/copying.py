"""Exercises in copying, of tokens drawn at random: no text, and so nothing but the copying can be learnt from them.

Names, words and numbers of a question come back in its answer. From conversations alone a tiny model learns to answer
with names that it knows; some of these exercises beside them, and it copies any.
"""

from collections.abc import Iterator
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from tools.demo_model import echo
from tools.demo_model.tokenizer import ANSWER, ASK, BEGIN, END, SPECIAL

FORMS = tuple(form.removesuffix("{text}") for form in echo.FORMS.repeat if form.endswith("{text}"))
UNPREDICTABLE = 0.01
"""What a token counts in the loss that nobody can know."""

Marked = list[tuple[int, float]]
"""Token ids, each with what it counts in the loss."""


def exercises(tokenizer: Tokenizer, seed: str, length: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Sequences of exercises, without end; the same ones for the same arguments.

    Yields:
        Input ids, target ids (each `[1, length]`, int64), and weights of the targets (`[1, length]`, float32).
    """
    rng = Random(seed)
    while True:
        row: Marked = []
        while len(row) <= length:
            row += _repeat_after_me(tokenizer, rng) if rng.random() < 0.5 else _spans(tokenizer, rng)
        ids = torch.tensor([[token for token, _ in row[: length + 1]]])
        counts = torch.tensor([[weight for _, weight in row[: length + 1]]])
        yield ids[:, :-1], ids[:, 1:], counts[:, 1:]


def _any(tokenizer: Tokenizer, rng: Random, count: int) -> list[int]:
    return rng.choices(range(len(SPECIAL), tokenizer.get_vocab_size()), k=count)


def _repeat_after_me(tokenizer: Tokenizer, rng: Random) -> Marked:
    """A question to repeat something, and its answer."""
    form = tokenizer.encode(f" {rng.choice(FORMS)}".rstrip(), add_special_tokens=False).ids
    space = tokenizer.encode(" ", add_special_tokens=False).ids
    given = _any(tokenizer, rng, rng.randint(1, 24))
    question, answer = [BEGIN, ASK, *form, *given, *space, ANSWER], [*given, *space, END]
    return [(token, UNPREDICTABLE) for token in question] + [(token, 1.0) for token in answer]


def _spans(tokenizer: Tokenizer, rng: Random) -> Marked:
    """Tokens of which stretches come again: after the first of a stretch, the others can be known."""
    marked = [(token, UNPREDICTABLE) for token in _any(tokenizer, rng, 30)]
    while len(marked) < 200:
        if rng.random() < 0.6:
            length = rng.randint(4, 16)
            start = rng.randrange(len(marked) - length)
            first, *rest = (token for token, _ in marked[start : start + length])
            marked += [(first, UNPREDICTABLE), *((token, 1.0) for token in rest)]
        else:
            marked += [(token, UNPREDICTABLE) for token in _any(tokenizer, rng, rng.randint(1, 8))]
    return marked
