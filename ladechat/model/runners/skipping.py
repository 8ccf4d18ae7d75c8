"""Drafting passes of a model with some of its layers skipped (Zhang et al. 2023, arXiv 2309.08168).

Whole decoder layers are skipped. The paper skips attention and MLP separately. But how a layer combines the two (norms
before or after, sequential or parallel, scaled) differs between architectures, while calling a layer or not works the
same in all of them, and nothing needs to be patched.
"""

import math
from collections.abc import Set

import torch

from ladechat.decoder.layer_skipping_model import Drafted
from ladechat.model.runners.argmax import argmax_with_log_probabilities
from ladechat.model.runners.kv_cache import SlabCache
from ladechat.model.runners.layer_loop import LayerLoop, Masks


def draft(
    loop: LayerLoop,
    cache: SlabCache,
    token: int,
    skipped: Set[int],
    threshold: float,
    mask: Masks,
    positions: torch.Tensor,
) -> list[Drafted]:
    """Return a chain of argmax tokens after the cached ones, as described in `LayerSkippingModel.draft`.

    While it runs, keys and values of the drafts are stored after the cached tokens, except in skipped layers, where
    they are not read. Then they are dropped: the verifying pass writes its own to the same places.

    Args:
        loop: the model.
        cache: the KV cache, with room for the whole chain.
        token: the last token of the text.
        skipped: indices of the skipped layers.
        threshold: a draft with a lower probability is the last one.
        mask: (1, 1, most, cached + most) of a chain, or one for each kind of layer.
        positions: (1, most) in the text.
    """
    used = [layer for layer in range(loop.depth) if layer not in skipped]
    start, most = cache.length, positions.shape[1]
    drafted: list[Drafted] = []
    try:
        for row in range(most):
            own, seen = positions[:, row : row + 1], mask_row(mask, row, most)
            hidden = loop.embed(torch.tensor([[token]], device=positions.device))
            angles = loop.angles(hidden, own)
            for layer in used:
                hidden = loop.through(layer, hidden, seen, own, angles, cache)
            cache.commit([0])
            tokens, log_probabilities = argmax_with_log_probabilities(loop.read(loop.final(hidden))[0])
            token, probability = tokens[0], math.exp(log_probabilities[0])
            if not math.isfinite(probability):
                break
            drafted.append(Drafted(token, probability))
            if probability < threshold:
                break
    finally:
        cache.truncate(start)
    return drafted


def mask_row(mask: Masks, row: int, rows: int) -> Masks:
    """Return one row of a causal mask (1, 1, rows, cached + rows), up to the row's own place."""
    if isinstance(mask, dict):
        return {kind: one[..., row : row + 1, : one.shape[-1] - rows + row + 1] for kind, one in mask.items()}
    return mask[..., row : row + 1, : mask.shape[-1] - rows + row + 1]
