"""Passes of a model with some of its layers skipped, which draft for it (Zhang et al. 2023, arXiv 2309.08168).

Whole decoder layers are skipped. The paper skips attention and MLP each by itself. But how a layer adds the two up
(norms before or after, one behind the other or side by side, scaled) differs from architecture to architecture, while a
layer that is called as it is, or not at all, does the same in all of them, and nothing needs to be patched.
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
    """A chain of the likeliest tokens behind the cached ones, as `LayerSkippingModel.draft` describes it.

    Keys and values of the drafts stand behind the cached tokens while it runs, those of skipped layers excepted, which
    nobody reads. Then they are forgotten: the verifying pass writes its own to the same places.

    Args:
        loop: the model.
        cache: with room for all of the chain.
        token: the last token of the text.
        skipped: the layers left out.
        threshold: a draft with a lower probability is the last one.
        mask: (1, 1, most, cached + most) of a chain, or one of each kind of layer.
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
    """Of a causal mask (1, 1, rows, cached + rows), what one row sees of the places up to its own."""
    if isinstance(mask, dict):
        return {kind: one[..., row : row + 1, : one.shape[-1] - rows + row + 1] for kind, one in mask.items()}
    return mask[..., row : row + 1, : mask.shape[-1] - rows + row + 1]
