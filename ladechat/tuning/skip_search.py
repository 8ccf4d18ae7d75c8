"""Which layers to skip for drafting: searched for on the model and machine at hand, and kept for the next session.

The paper (Zhang et al. 2023, arXiv 2309.08168) searches for hours, by Bayesian optimisation. This is hill climbing
within as many seconds as the user gives: beginning with the default set, put a layer in or out if that makes decoding
faster.
"""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ladechat.decoder.draft_model import DraftModel
from ladechat.decoder.drafters.layer_skip import LayerSkipDrafter, default_skipped
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Limits
from ladechat.tuning.kept import kept_file, read_kept, write_kept

Clock = Callable[[], float]

LEAST_GAIN = 1.02
"""Less than this may be chance: a set has to be so much faster than the best so far."""
JUDGED_TOKENS = 64
"""How many tokens are written with each set."""


class Found(NamedTuple):
    """The best set of layers to skip, the tokens per second with it, and how many sets were tried."""

    skipped: frozenset[int]
    rate: float
    tried: int


def skipped_layers(
    runner: Runner, model: DraftModel, prompt: Sequence[int], seconds: float, file: Path | None = None
) -> frozenset[int]:
    """The layers to skip for drafting: what was kept, or else what a search finds, which is then kept.

    Args:
        runner: see `measured_rate`.
        model: see `measured_rate`.
        prompt: see `measured_rate`.
        seconds: what a search may take; with 0, nothing is searched for or kept, and the default set is taken.
        file: where the set is kept from session to session; None searches in each.
    """
    kept = None if file is None else read_skipped(file, model.layers)
    if kept is not None or not seconds:
        return default_skipped(model.layers) if kept is None else kept
    found = search(measured_rate(runner, model, prompt), model.layers, seconds).skipped
    if file is not None:
        write_skipped(file, found)
    return found


def search(
    rate: Callable[[frozenset[int]], float],
    layers: int,
    seconds: float,
    seed: int = 0,
    clock: Clock = time.perf_counter,
) -> Found:
    """Climb from the default set, a layer at a time, until no single layer makes it faster or the time is over.

    No set is tried twice, and no new one begun after the time is over.

    Args:
        rate: tokens per second with a set.
        layers: of the model, at least one.
        seconds: the budget.
        seed: of the order in which layers are tried.
        clock: in seconds.
    """
    dice, ends = random.Random(seed), clock() + seconds
    best = default_skipped(layers)
    best_rate = rate(best)
    tried, improved = {best}, True
    while improved:
        improved = False
        for layer in dice.sample(range(layers), layers):
            candidate = best ^ {layer}
            if candidate in tried or len(candidate) == layers:
                continue
            if clock() >= ends:
                return Found(best, best_rate, len(tried))
            tried.add(candidate)
            reached = rate(candidate)
            if reached >= LEAST_GAIN * best_rate:
                best, best_rate, improved = candidate, reached, True
    return Found(best, best_rate, len(tried))


def measured_rate(
    runner: Runner, model: DraftModel, prompt: Sequence[int], clock: Clock = time.perf_counter
) -> Callable[[frozenset[int]], float]:
    """What judges a set of layers: the tokens per second of the text that the model writes behind a prompt.

    It is the same text with each set, since drafts change no token. The prompt is read before the clock starts.

    Args:
        runner: the model; its cache is left with the text that was written last.
        model: the same, drafting.
        prompt: token ids, at least one, with room for `JUDGED_TOKENS` in the context.
        clock: in seconds.
    """

    def rate(skipped: frozenset[int]) -> float:
        for _ in runner.prefill(prompt):
            pass
        began = clock()
        steps = Decoder(runner, [LayerSkipDrafter(model, skipped)]).run(prompt, Limits(JUDGED_TOKENS))
        return sum(len(step.tokens) for step in steps) / (clock() - began)

    return rate


def skip_file(**about: object) -> Path:
    """Where the skipped layers of a model are kept, as it runs here: see `kept_file`."""
    return kept_file("skipped", **about)


def read_skipped(file: Path, layers: int) -> frozenset[int] | None:
    """The set that is kept for a model of so many layers; None if nothing usable is."""
    kept = read_kept(file, "skipped")
    if not isinstance(kept, list) or not all(type(layer) is int for layer in kept):
        return None
    skipped = frozenset(kept)
    return skipped if skipped < frozenset(range(layers)) else None


def write_skipped(file: Path, skipped: frozenset[int]) -> None:
    """Keep a set. Where nothing can be written it is searched for again the next time."""
    write_kept(file, "skipped", sorted(skipped))
