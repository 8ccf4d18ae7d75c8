"""Checks whether a model's `prepare_inputs_for_generation` changes inputs: if so, only its own loop is exact."""

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, GenerationMixin, PreTrainedModel

from ladechat.model.runners.kv_cache import CACHE

NOT_OF_THE_TEXT = (CACHE, "use_cache", "logits_to_keep", "return_dict", "is_first_iteration")
"""Keys that it may return in addition to the text, its mask and its positions: they do not change what a pass reads."""


def prepares_as_usual(model: PreTrainedModel, input_ids: Tensor, positions: Tensor | None, longest: int) -> bool:
    """Return whether `prepare_inputs_for_generation` returns the usual inputs, and the model updates them as usual.

    A model with transformers' own preparation is not called. Other models are called for three passes: the first, the
    second and the last. These are samples, no proof. The update between passes is not sampled: the model's
    `_update_model_kwargs_for_generation` has to be that of transformers.

    Args:
        model: any model; it is not run.
        input_ids: (1, n) int64, without padding.
        positions: as `generate` passes them, (1, n) or (axes, 1, n); None if the model takes none.
        longest: the tokens of the longest possible text; no pass reads its last one.
    """
    if _func(model.prepare_inputs_for_generation) is not GenerationMixin.prepare_inputs_for_generation:
        length, last = input_ids.shape[1], longest - 1
        for end in sorted({length, min(length + 1, last), last}):
            if not _yields_the_usual(model, input_ids, positions, end):
                return False
    update = _func(model._update_model_kwargs_for_generation)
    return update is GenerationMixin._update_model_kwargs_for_generation


def at_usual_positions(positions: Tensor) -> bool:
    """Return whether positions count from 0, on every axis.

    Args:
        positions: (1, n), or (axes, 1, n).
    """
    usual = torch.arange(positions.shape[-1], device=positions.device)
    return positions.dim() in (2, 3) and bool((positions == usual).all())


def _yields_the_usual(model: PreTrainedModel, input_ids: Tensor, positions: Tensor | None, end: int) -> bool:
    """Return whether `prepare_inputs_for_generation` returns the usual inputs for the pass that reads a text up to its
    token `end`: the whole text if that is the prompt, else its last token.
    """
    new_tokens = end - input_ids.shape[1]
    text = torch.cat([input_ids, input_ids[:, -1:].expand(-1, new_tokens)], dim=1)
    seen = torch.ones_like(text)
    cache = _cache_of(input_ids, end - 1 if new_tokens else 0)
    inputs: dict[str, Any] = {"attention_mask": seen, CACHE: cache}
    if positions is not None:
        steps = torch.arange(1, new_tokens + 1, device=positions.device)
        inputs["position_ids"] = torch.cat([positions, positions[..., -1:] + steps], dim=-1)
    count = 1 if new_tokens else end
    try:
        prepared = model.prepare_inputs_for_generation(  # type: ignore[operator]  # of a mixin, not seen by mypy
            text, next_sequence_length=count, is_first_iteration=not new_tokens, use_cache=True, **inputs
        )
    except Exception:  # of the model's code; `generate` will raise it again
        return False
    ids, positions_out = prepared.pop("input_ids", None), prepared.pop("position_ids", None)
    mask_out = prepared.pop("attention_mask", None)
    return (
        prepared.get(CACHE) is cache
        and not [name for name, value in prepared.items() if value is not None and name not in NOT_OF_THE_TEXT]
        and _equal(ids, text[:, -count:])
        and _equal(mask_out, seen)
        and (positions is None or _equal(positions_out, inputs["position_ids"][..., -count:]))
    )


def _func(method: Any) -> Any:
    """Return the function of a method, bound or not."""
    return getattr(method, "__func__", method)


def _cache_of(like: Tensor, length: int) -> DynamicCache:
    """Return a cache that reports a length of `length` tokens."""
    cache = DynamicCache()
    if length:
        nothing = torch.zeros((len(like), 1, length, 1), device=like.device)
        cache.update(nothing, nothing, 0)
    return cache


def _equal(one: Any, other: Tensor) -> bool:
    return isinstance(one, Tensor) and one.shape == other.shape and bool((one == other).all())
