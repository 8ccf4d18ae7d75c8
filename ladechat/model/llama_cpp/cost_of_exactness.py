"""Times fast passes of a GGUF file beside exact ones, for the choice between the two."""

import math
from pathlib import Path

import numpy as np

from ladechat.model.llama_cpp.exactness import CACHED, Exactness, TimedContext
from ladechat.model.llama_cpp.model import PackedModel

DEAR = 1.1
"""Passes are exact unless that takes so many times as long as fast ones."""

WIDE = 4
"""The slots of a pass with drafts, as it pays on a CPU."""

LOOKS, ROUNDS = 2, 3
"""How often exact passes must look dear; and how often passes are timed for each look: of each size the shortest
counts."""


def cost_of_exactness(exact: PackedModel, found: Exactness, path: Path, threads: int) -> float:
    """Return the time of exact passes, with that of fast ones as 1: of a plain pass and of a wide one together.

    Closes the model, so that its weights are in memory once. Where exact passes seem dear, both are timed again, and
    the smallest figure counts: what disturbs the machine for a moment must not make a model inexact.

    Args:
        exact: the model with its weights as they are stored.
        found: the times of its passes, and the most slots of an exact one; larger ones are split.
        path: its file.
        threads: the number of threads that compute.
    """
    on_gpu, known = exact.on_gpu, (exact.architecture, exact.vocabulary)
    took = _plain_and_wide(found.seconds, found.slots)
    exact.close()
    cost = math.inf
    for look in range(LOOKS):
        if look:
            took = _timed(PackedModel(path, gpu=on_gpu, without_texts=known), threads, found.slots)
        least = _timed(PackedModel(path, repacked=True, gpu=on_gpu, without_texts=known), threads, WIDE)
        cost = min(cost, took / least)
        if cost < DEAR:
            break
    return cost


def _timed(model: PackedModel, threads: int, slots: int) -> float:
    """Return the seconds of a plain pass and of a wide one in parts of at most so many slots; close the model."""
    context = TimedContext(model, 2 * (CACHED + WIDE), CACHED + WIDE, threads)
    tokens = np.arange(CACHED + WIDE, dtype=np.int32) % model.vocabulary
    places = np.arange(CACHED + WIDE, dtype=np.int32)
    context.decode(tokens[:CACHED], places[:CACHED], outputs=False)
    sizes = {1, WIDE % slots, min(slots, WIDE)} - {0}
    for size in sorted(sizes) * ROUNDS:
        context.truncate(CACHED)
        context.decode(tokens[CACHED:][:size], places[CACHED:][:size])
    context.close()
    model.close()
    return _plain_and_wide(context.seconds, slots)


def _plain_and_wide(seconds: dict[int, float], slots: int) -> float:
    """Return the seconds of a plain pass and of a wide one in parts of at most so many slots."""
    parts, rest = divmod(WIDE, min(slots, WIDE))
    return seconds[1] + parts * seconds[min(slots, WIDE)] + (seconds[rest] if rest else 0.0)
