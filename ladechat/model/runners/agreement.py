"""Whether two computations of the same logits differ by rounding only."""

import torch
from transformers import PreTrainedModel

COARSE = 0.1
LARGEST_DEVIATION = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: COARSE, torch.bfloat16: COARSE}
"""The deviation that is well above what rounding does in each type, and well below what a wrong mask does."""

BAND = 30.0
"""A token whose logit is so far below the largest is chosen with a probability below 1e-13. Whatever its logit is, it
decides nothing: heads that rule tokens out with −1e4 or −inf must not hide how far the others are off."""

LIKELIEST = 16
"""How many tokens are compared: those that may be chosen at all."""

NEAR_TIE = 4.0
"""The token with the largest logit may be another one where the two are this many deviations apart."""


def deviation(logits: torch.Tensor, expected: torch.Tensor) -> float:
    """How far logits are from the expected ones, as a share of the spread of those that decide; 0 for equal ones.

    The mean |Δlogit| of the likeliest tokens counts, and how much less likely the argmax is by the expected logits.

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


def agree(logits: torch.Tensor, expected: torch.Tensor, model: PreTrainedModel) -> bool:
    """Whether logits, in float32, differ by no more than the model's type explains."""
    allowed = LARGEST_DEVIATION.get(model.dtype, COARSE)
    # Activations of quantised models may be rounded as coarsely as their weights.
    if getattr(model, "is_quantized", False) or torch.is_autocast_enabled(model.device.type):
        allowed = COARSE
    return deviation(logits, expected) <= allowed  # false where one of them is not a number
