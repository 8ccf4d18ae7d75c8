"""The training losses: distance of guesses from the text, or from the model's own distribution there."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

DECAY = 0.8
"""The weight of each further token ahead, relative to the one before: 1, 0.8, 0.64 …"""


def weights(ahead: int, device: torch.device | None = None) -> Tensor:
    """Return the weight of each token ahead, (k,) float32; their sum is 1."""
    each = DECAY ** torch.arange(ahead, device=device, dtype=torch.float32)
    return each / each.sum()


def guess_loss(guesses: Tensor, targets: Tensor, real: Tensor | None = None) -> Tensor:
    """Return the weighted loss of guesses, a scalar in float32.

    Args:
        guesses: (k, n, vocabulary) logits.
        targets: (k, n), the tokens of the text.
        real: (k, n, vocabulary), the model's own logits for them, for the divergence KL(real ‖ guess) as in Wu et al.
            2024 (arXiv 2404.12022); None for cross-entropy.
    """
    ahead = len(guesses)
    if real is None:
        each = cross_entropy(guesses.float().flatten(0, 1), targets.flatten(), reduction="none").view(targets.shape)
    else:
        wanted = real.float().log_softmax(-1)
        each = kl_div(guesses.float().log_softmax(-1), wanted, reduction="none", log_target=True).sum(-1)
    return weights(ahead, guesses.device) @ each.mean(-1)
