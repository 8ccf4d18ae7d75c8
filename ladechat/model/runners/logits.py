"""The logits of a pass: their argmax, and whether two computations of them differ by rounding only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ladechat.decoder.runner import Runner

if TYPE_CHECKING:
    from transformers import PreTrainedModel

COARSE = 0.1
LARGEST_DEVIATION = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: COARSE, torch.bfloat16: COARSE}
"""The allowed deviation by type: well above the effect of rounding, and well below that of a wrong mask."""

BAND = 30.0
"""A token whose logit is so far below the largest has a probability below 1e-13, so its logit does not matter: heads
that rule tokens out with −1e4 or −inf must not hide the deviation of the others."""

LIKELIEST = 16
"""The number of tokens compared: those that may be chosen at all."""

NEAR_TIE = 4.0
"""The argmax may change to a token whose logit is up to this many deviations lower."""

STEP = 977
"""The step between the ids of `ordinary_tokens`, modulo the vocabulary. On special tokens, which have the lowest ids,
some models amplify rounding by a factor of a thousand."""


def argmax(logits: Tensor) -> tuple[list[int], list[float] | None]:
    """Return the token with the largest logit in each row of (T, vocabulary), and on a GPU its log-probability.

    Logits in float64 are rounded to float32 first, as transformers does: where two become equal, the first counts.
    A GPU runs asynchronously until something is read, so all that a greedy step needs is read at once. On a CPU
    computing the log-probabilities of all slots would be wasted: None.
    """
    if logits.device.type == "cpu":
        # numpy takes a tenth of torch's time, but has no bfloat16.
        logits = logits.float() if logits.dtype is torch.float64 else logits
        tokens: list[int] = (logits.numpy() if logits.dtype is torch.float32 else logits).argmax(-1).tolist()
        return tokens, None
    return argmax_with_log_probabilities(logits)


def argmax_with_log_probabilities(logits: Tensor) -> tuple[list[int], list[float]]:
    """Return the token with the largest logit in each row, and its log-probability, in one transfer."""
    return in_lists(best(logits))


def best(logits: Tensor) -> Tensor:
    """Return (2, T) float32: the token with the largest logit in each row of (T, vocabulary), its log-probability."""
    exact = logits.float()
    largest = exact.max(-1)
    # float32 holds every token id, up to 16 million, exactly.
    return torch.stack([largest.indices.float(), largest.values - exact.logsumexp(-1)])


def in_lists(found: Tensor) -> tuple[list[int], list[float]]:
    """Return the result of `best` as lists: tokens, log-probabilities."""
    both: list[list[float]] = found.tolist()
    return [int(token) for token in both[0]], both[1]


def deviation(logits: torch.Tensor, expected: torch.Tensor) -> float:
    """Return how far logits are from the expected ones, relative to the spread of those that matter; 0 if equal.

    The larger of the mean |Δlogit| of the top tokens, and the gap of the argmax in the expected logits.

    Args:
        logits: (vocabulary,) float32.
        expected: (vocabulary,) float32, finite at its largest.
    """
    most = expected.max()
    alive = expected[expected > most - BAND]
    spread = float(alive.std()) if len(alive) > 1 else BAND
    likeliest = expected.topk(min(LIKELIEST, len(alive))).indices
    off = float((logits[likeliest] - expected[likeliest]).abs().mean())
    off = max(off, float(most - expected[logits.argmax()]) / NEAR_TIE)
    if off == 0.0:
        return 0.0
    return off / spread if spread else torch.inf


def agree(logits: torch.Tensor, expected: torch.Tensor, model: "PreTrainedModel") -> bool:
    """Return whether (vocabulary,) float32 logits differ by no more than rounding in the model's type explains."""
    allowed = LARGEST_DEVIATION.get(model.dtype, COARSE)
    # Activations of quantised models may be rounded as coarsely as their weights.
    if getattr(model, "is_quantized", False) or torch.is_autocast_enabled(model.device.type):
        allowed = COARSE
    return deviation(logits, expected) <= allowed  # false for NaN


def ordinary_tokens(model: "PreTrainedModel") -> list[int]:
    """Return twelve different tokens for a check of a model's passes."""
    vocabulary: int = model.config.get_text_config(decoder=True).vocab_size
    step = STEP if vocabulary % STEP else STEP + 1
    return [(500 + step * number) % vocabulary for number in range(12)]


def fill(runner: Runner, tokens: Sequence[int]) -> None:
    """Bring all tokens but the last into the cache of a runner."""
    for _ in runner.prefill(tokens):
        pass
