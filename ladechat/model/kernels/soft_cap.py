"""Attention with a soft cap of its scores, cap · tanh(score / cap), as Gemma 2 has."""

from typing import Any

import torch
from torch import Tensor


def soft_cap(config: Any) -> float | None:
    """Return the soft cap of attention that a model's configuration names, if it has one."""
    cap = getattr(config.get_text_config(decoder=True), "attn_logit_softcapping", None)
    return None if cap is None else float(cap)


def attention_for(config: Any) -> str:
    """Return the attention of transformers in which a model is loaded: "sdpa", which ignores caps without a word, or
    "eager" where there is one.
    """
    return "sdpa" if soft_cap(config) is None else "eager"


def capped_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float, cap: float
) -> Tensor:
    """Return capped attention, (batch, T, heads, value_dim), computed by torch.

    Args:
        query: (batch, heads, T, key_dim).
        key: (batch, key_value_heads, L + T, key_dim).
        value: (batch, key_value_heads, L + T, value_dim).
        mask: (batch or 1, 1, T, L + T) bool; None: each slot sees all before it.
        scale: factor of the scores.
        cap: of the scores.
    """
    shared_by, (slots, tokens) = query.shape[1] // key.shape[1], (query.shape[2], key.shape[2])
    key, value = (one.repeat_interleave(shared_by, dim=1) for one in (key, value))
    if mask is None:
        mask = torch.ones(slots, tokens, dtype=torch.bool, device=query.device).tril(tokens - slots)
    scores = torch.tanh(query @ key.transpose(2, 3) * (scale / cap)) * cap
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
    return (weights @ value).transpose(1, 2).contiguous()
