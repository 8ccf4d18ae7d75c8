"""The argmax of the logits of a pass."""

import torch
from torch import Tensor


def argmax(logits: Tensor) -> tuple[list[int], list[float] | None]:
    """The token with the largest logit in each row of (T, vocabulary) logits, and its log-probability on a GPU.

    Logits in float64 are rounded to float32 first, as transformers does it: where two become equal, the first counts.
    A GPU works on its own until something is read, so all that a greedy step needs is read at once. On a CPU the
    log-probabilities of all slots would be computed for nothing: None.
    """
    if logits.device.type == "cpu":
        # numpy takes a tenth of torch's time, but knows no bfloat16.
        logits = logits.float() if logits.dtype is torch.float64 else logits
        tokens: list[int] = (logits.numpy() if logits.dtype is torch.float32 else logits).argmax(-1).tolist()
        return tokens, None
    return argmax_with_log_probabilities(logits)


def argmax_with_log_probabilities(logits: Tensor) -> tuple[list[int], list[float]]:
    """The token with the largest logit in each row, and its log-probability, in one transfer."""
    return in_lists(best(logits))


def best(logits: Tensor) -> Tensor:
    """(2, T) float32: the token with the largest logit in each row of (T, vocabulary), and its log-probability."""
    exact = logits.float()
    largest = exact.max(-1)
    # float32 holds every token id, up to 16 million, exactly.
    return torch.stack([largest.indices.float(), largest.values - exact.logsumexp(-1)])


def in_lists(found: Tensor) -> tuple[list[int], list[float]]:
    """What `best` found: tokens, log-probabilities."""
    both: list[list[float]] = found.tolist()
    return [int(token) for token in both[0]], both[1]
