"""The search for the layers to skip in drafting, on the user's model and machine; the result is saved.

The paper (Zhang et al. 2023, arXiv 2309.08168) searches for hours, by Bayesian optimisation. This is hill climbing
within as many seconds as the user gives: from the default set, or the one found before, it adds or removes a layer if
that makes decoding faster.
"""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ladechat.decoder.drafters.layer_skip import LayerSkipDrafter, default_skipped
from ladechat.decoder.layer_skipping_model import LayerSkippingModel
from ladechat.decoder.loop import Decoder
from ladechat.decoder.runner import Runner
from ladechat.decoder.step import Limits
from ladechat.tuning.saved import read_value, write_value

Clock = Callable[[], float]
Over = Callable[[], bool]
"""Returns whether a search has to end."""

LEAST_GAIN = 1.02
"""The factor by which a set has to be faster than the best so far: less may be chance."""
JUDGED_TOKENS = 64
"""The number of tokens generated with each set."""
JUDGED_QUESTION = "Explain in a few sentences why the sky is blue."
"""The question that they answer, in the model's chat format."""


class Found(NamedTuple):
    """The best set of layers to skip, its tokens per second, and the number of sets tried."""

    skipped: frozenset[int]
    rate: float
    tried: int


def improved(runner: Runner, model: LayerSkippingModel, prompt: Sequence[int], file: Path, over: Over) -> Found:
    """Search from the set saved in a file, or else from the default one; save and return the best set."""
    saved = read_skipped(file, model.layers)
    start = default_skipped(model.layers) if saved is None else saved
    rate = measured_rate(runner, model, prompt, over)
    rate(start)  # the first passes are slower than all others
    found = search(rate, model.layers, over, start)
    if found.skipped != start:
        write_skipped(file, found.skipped)
    return found


def search(
    rate: Callable[[frozenset[int]], float],
    layers: int,
    over: Over,
    start: frozenset[int],
    seed: int | None = None,
) -> Found:
    """Climb from a set, one layer at a time, until no single layer makes it faster or the search has to end.

    A set that seems faster is measured once more, and so is the best so far. Otherwise no set is tried twice. No new
    one is started after the search has to end. `rate` returns the tokens per second with a set.
    """
    dice = random.Random(seed)
    best, best_rate = start, rate(start)
    tried, climbing = {best}, True
    while climbing:
        climbing = False
        for layer in dice.sample(range(layers), layers):
            candidate = best ^ {layer}
            if candidate in tried or len(candidate) == layers:
                continue
            if over():
                return Found(best, best_rate, len(tried))
            tried.add(candidate)
            reached = rate(candidate)
            if reached >= LEAST_GAIN * best_rate > 0:  # may be due to a busy machine: measure both once more
                best_rate, reached = max(best_rate, rate(best)), min(reached, rate(candidate))
                if reached >= LEAST_GAIN * best_rate:
                    best, best_rate, climbing = candidate, reached, True
    return Found(best, best_rate, len(tried))


def budget(
    seconds: float,
    progress: Callable[[float], None],
    stopped: Callable[[], bool] = lambda: False,
    clock: Clock = time.perf_counter,
) -> Over:
    """Return a function that ends a search `seconds` from now, or when stopped; each call reports progress, 0 to 1."""
    began = clock()

    def over() -> bool:
        part = (clock() - began) / seconds
        progress(min(part, 1.0))
        return part >= 1 or stopped()

    return over


def measured_rate(
    runner: Runner,
    model: LayerSkippingModel,
    prompt: Sequence[int],
    over: Over = lambda: False,
    clock: Clock = time.perf_counter,
) -> Callable[[frozenset[int]], float]:
    """Return a function that measures a set of layers: the tokens per second of the text generated after a prompt.

    The text is the same with each set, since drafts change no token. The prompt is read before the clock starts. Where
    the search has to end before the text is complete, the rate is 0: it would be that of another text.

    The prompt has at least one token, and leaves room for `JUDGED_TOKENS` in the context. The runner's cache is left
    with the text generated last. `over` is called between two decoding steps.
    """

    def rate(skipped: frozenset[int]) -> float:
        for _ in runner.prefill(prompt):
            if over():
                return 0.0
        began, tokens = clock(), 0
        for step in Decoder(runner, [LayerSkipDrafter(model, skipped)]).run(prompt, Limits(JUDGED_TOKENS)):
            tokens += len(step.tokens)
            if over():
                return 0.0
        return tokens / (clock() - began)

    return rate


def read_skipped(file: Path, layers: int) -> frozenset[int] | None:
    """Return the set saved for a model of so many layers; None if there is none that can be used."""

    def usable(saved: Any) -> frozenset[int]:
        skipped = frozenset(saved["skipped"])
        if any(type(layer) is not int for layer in skipped) or not skipped < frozenset(range(layers)):
            raise ValueError("these are no layers of the model, or all of them")
        return skipped

    return read_value(file, usable)


def write_skipped(file: Path, skipped: frozenset[int]) -> None:
    """Save a set. Where the file cannot be written, it is searched for again the next time."""
    write_value(file, {"skipped": sorted(skipped)})
