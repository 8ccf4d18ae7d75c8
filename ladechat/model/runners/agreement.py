"""Whether two computations of the same logits differ by rounding only."""

import torch
from transformers import PreTrainedModel

COARSE = 0.1
LARGEST_DEVIATION = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: COARSE, torch.bfloat16: COARSE}
"""Mean |Δlogit| over the spread of the logits: well above what rounding does in each type, well below a wrong mask."""


def agree(logits: torch.Tensor, expected: torch.Tensor, model: PreTrainedModel) -> bool:
    """Whether logits, in float32, differ by no more than the model's type explains."""
    allowed = LARGEST_DEVIATION.get(model.dtype, COARSE)
    if getattr(model, "is_quantized", False):  # its activations may be rounded as coarsely as its weights
        allowed = COARSE
    return bool((logits - expected).abs().mean() <= allowed * expected.std())
