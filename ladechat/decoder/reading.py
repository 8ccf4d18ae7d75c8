"""What a step reads of the logits of a pass."""

import torch
from torch import Tensor


def read(logits: Tensor) -> tuple[list[int], list[float] | None]:
    """The likeliest token under every slot, and its log-probability where that costs less now than later.

    A GPU works on its own until something is read: so all that a greedy step needs comes in one piece. On a CPU torch
    would work for nothing on the log-probabilities of all slots.
    """
    if logits.device.type == "cpu":
        likeliest: list[int] = logits.argmax(-1).tolist()
        return likeliest, None
    return in_one_piece(logits)


def in_one_piece(logits: Tensor) -> tuple[list[int], list[float]]:
    """The likeliest token under every row of (T, vocabulary) logits, and its log-probability, read at once."""
    exact = logits.float()
    best = exact.max(-1)
    # float32 holds every token id, up to 16 million, exactly.
    both = torch.stack([best.indices.float(), best.values - exact.logsumexp(-1)]).tolist()
    return [int(token) for token in both[0]], both[1]
