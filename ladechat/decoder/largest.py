"""The largest logits of each row."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 64


def largest(logits: "Tensor", count: int) -> NDArray[np.int64]:
    """Return (T, count) int64, the tokens with the largest logits in each row of (T, vocabulary), the largest first.

    On a CPU by blocks: the largest logits lie in the blocks with the largest maxima, and few of these need sorting.
    """
    rows, vocabulary = logits.shape
    if logits.device.type != "cpu" or vocabulary % BLOCK or vocabulary // BLOCK <= count:
        return np.asarray(logits.topk(count).indices.cpu())
    blocks = logits.view(rows, vocabulary // BLOCK, BLOCK)
    best = blocks.amax(-1).topk(count).indices
    within = blocks.gather(1, best[..., None].expand(-1, -1, BLOCK)).view(rows, -1).topk(count).indices
    return np.asarray(best.gather(1, within // BLOCK) * BLOCK + within % BLOCK)
