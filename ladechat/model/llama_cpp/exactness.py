"""Compares passes of several slots with single tokens, bit for bit, and times them along the way."""

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ladechat.model.llama_cpp.context import SPARE, Context
from ladechat.model.llama_cpp.model import FileRefused, PackedModel

CACHED = 5
"""The number of cached tokens before a compared pass."""

SIZES = (2, 3, 4, 7, 8, 16)
"""The slots of the passes that are compared. Kernels for many rows begin at powers of two."""

MOST_SLOTS, FEW = SIZES[-1], 8
"""The most slots of a pass that is compared; and of one before tokens for larger passes are read alone."""

LEAST, SECONDS = 4, 4.0
"""How many slots are compared in a quick trial even where their tokens, read alone, take longer than so many seconds of
processor time, of all threads."""

STEP = 977
"""The step between the ids of the tokens, modulo the vocabulary: no special ones, which have the lowest ids."""

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Exactness:
    """What passes of a model agree in.

    Attributes:
        slots: the most slots of a pass in which each gets the logits of a pass of its own, bit for bit.
        moved: by how much logits differ in larger passes that were compared.
        complete: whether no pass was left out because of its time.
        seconds: the shortest time of a pass, by its slots, and of one that chooses each slot's token.
    """

    slots: int
    moved: float = 0.0
    complete: bool = True
    seconds: dict[int, float] = field(default_factory=dict)


class TimedContext(Context):
    """A context that remembers the shortest time of a pass by its slots.

    Attributes:
        seconds: the seconds, by the number of slots.
    """

    def __init__(self, model: PackedModel, cells: int, slots: int, threads: int) -> None:
        super().__init__(model, cells, slots, threads)
        self.seconds: dict[int, float] = {}

    def decode(self, tokens: NDArray[np.int32], *others: Any, **options: Any) -> Logits:
        """Run a pass as `Context.decode` does, and choose each slot's token, as decoding would."""
        began = time.perf_counter()
        logits = super().decode(tokens, *others, **options)
        if len(logits):
            logits.argmax(-1)
            self.seconds[len(tokens)] = min(time.perf_counter() - began, self.seconds.get(len(tokens), math.inf))
        return logits


def compare(model: PackedModel, threads: int, seconds: float = math.inf, all_sizes: bool = False) -> Exactness:
    """Compare the logits of passes of several slots with those of passes of one.

    Args:
        model: the opened file.
        threads: the number of threads that compute.
        seconds: where reading the tokens alone takes longer than so many seconds of processor time, only smaller passes
            are compared.
        all_sizes: whether passes are compared that are larger than one that is not exact, for how far logits move.

    Raises:
        FileRefused: it continues no text, or its logits are not numbers.
    """
    if not model.writes_text:
        raise FileRefused(f"it is of type {model.architecture!r}, which continues no text")
    if not model.vocabulary:
        raise FileRefused("it has no vocabulary")
    text = np.array([(500 + STEP * n) % model.vocabulary for n in range(CACHED + MOST_SLOTS + 1)], np.int32)
    context = TimedContext(model, 2 * len(text) + MOST_SLOTS, MOST_SLOTS, threads)
    context.decode(text[:CACHED], np.arange(CACHED, dtype=np.int32), outputs=False)
    over = time.process_time() + seconds
    alone = _one_by_one(context, text, CACHED, len(text) if all_sizes else CACHED + FEW + 1, over)
    if not np.isfinite(alone.max(-1)).all():
        raise FileRefused("it gives logits that are not numbers")
    if model.has_state:
        return Exactness(MOST_SLOTS, seconds=context.seconds)
    exact, moved, complete = 1, 0.0, True
    for size in SIZES:
        if moved and not all_sizes:
            break
        if size == MOST_SLOTS and len(alone) == FEW + 1:
            alone = np.concatenate([alone, _others_alone(context, text, over)])
        complete = size < len(alone)
        if not complete:
            break
        context.truncate(CACHED)
        moved = max(moved, _difference(_decode(context, text, CACHED, CACHED + size), alone[:size]))
        if context.seconds[size] > size * context.seconds[1]:  # than its tokens alone: that was a stall
            context.truncate(CACHED)
            _decode(context, text, CACHED, CACHED + size)
        exact = size if not moved else exact
    if exact > 2:
        off = _branch_difference(context, text, alone, min(exact, FEW))
        exact, moved = (1, max(moved, off)) if off else (exact, moved)
    return Exactness(exact, moved, complete, {n: took for n, took in context.seconds.items() if n <= exact})


def _decode(context: Context, text: NDArray[np.int32], begin: int, end: int) -> Logits:
    """Return the logits of the tokens of the text from one place up to another one, in one pass."""
    return context.decode(text[begin:end], np.arange(begin, end, dtype=np.int32))


def _one_by_one(context: Context, text: NDArray[np.int32], begin: int, end: int, over: float) -> Logits:
    """Return the logits of tokens read alone: as many as the time allows, but `LEAST` + 1 in any case."""
    rows: list[Logits] = []
    for place in range(begin, end):
        rows.append(_decode(context, text, place, place + 1).copy())
        if place >= CACHED + LEAST and time.process_time() > over:
            break
    return np.concatenate(rows)


def _others_alone(context: Context, text: NDArray[np.int32], over: float) -> Logits:
    """Return the logits of the tokens after the first ones, read alone. The first ones are read in an exact pass."""
    context.truncate(CACHED)
    _decode(context, text, CACHED, CACHED + FEW)
    return _one_by_one(context, text, CACHED + FEW, len(text), over)[1:]


def _branch_difference(context: Context, text: NDArray[np.int32], alone: Logits, size: int) -> float:
    """Return how far logits are off in a tree whose second branch is the text, and after that branch was committed."""
    branch = size // 2
    context.truncate(CACHED)
    context.share_text(2)
    tokens = np.concatenate([text[CACHED:][:1], text[:branch], text[CACHED + 1 :][: size - branch - 1]])
    places = CACHED + np.array([0, *range(1, branch + 1), *range(1, size - branch)], np.int32)
    sequences = np.zeros((size, 2), np.bool_)
    sequences[0] = sequences[1 : branch + 1, 0] = sequences[branch + 1 :, 1] = True
    logits = context.decode(tokens, places.astype(np.int32), sequences)
    own = size - branch
    off = _difference(logits[[0, *range(branch + 1, size)]], alone[:own])
    saved = context.copy(SPARE, CACHED + 1, CACHED + own)
    context.truncate(CACHED + 1)
    context.append(saved)
    return max(off, _difference(_decode(context, text, CACHED + own, CACHED + own + 1), alone[own : own + 1]))


def _difference(logits: Logits, expected: Logits) -> float:
    return float(np.abs(logits - expected).max())
