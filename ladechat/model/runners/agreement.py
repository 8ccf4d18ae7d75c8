"""A test whether two computations of the same logits differ by rounding only."""

import torch
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


def agree(logits: torch.Tensor, expected: torch.Tensor, model: PreTrainedModel) -> bool:
    """Return whether (vocabulary,) float32 logits differ by no more than rounding in the model's type explains."""
    allowed = LARGEST_DEVIATION.get(model.dtype, COARSE)
    # Activations of quantised models may be rounded as coarsely as their weights.
    if getattr(model, "is_quantized", False) or torch.is_autocast_enabled(model.device.type):
        allowed = COARSE
    return deviation(logits, expected) <= allowed  # false for NaN
