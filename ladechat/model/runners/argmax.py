"""The argmax of the logits of a pass."""

import torch
from torch import Tensor


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
