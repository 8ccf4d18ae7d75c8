"""Whether a model's own preparation hands it what lookahead decoding does: a text and its positions, no more."""

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, GenerationMixin, PreTrainedModel

NOT_OF_THE_TEXT = ("past_key_values", "use_cache", "logits_to_keep", "return_dict", "is_first_iteration")


def prepares_as_usual(
    model: PreTrainedModel, input_ids: Tensor, mask: Tensor, positions: Tensor | None, longest: int
) -> bool:
    """Compare what the model's preparation yields for the first, the second and the last pass with the usual inputs.

    A model that has transformers' own preparation is not asked.

    Args:
        model: any; it is not run.
        input_ids: (B, n) int64.
        mask: (B, n), 0 on padding.
        positions: as `generate` passes them, (B, n) or (axes, B, n); None where the model takes none.
        longest: tokens of the longest text that may come.
    """
    if _func(model.prepare_inputs_for_generation) is not GenerationMixin.prepare_inputs_for_generation:
        length = input_ids.shape[1]
        for end in {length, length + 1, max(longest, length + 1)}:
            if not _yields_the_usual(model, input_ids, mask, positions, end):
                return False
    update = _func(model._update_model_kwargs_for_generation)
    return update is GenerationMixin._update_model_kwargs_for_generation


def at_usual_positions(positions: Tensor, mask: Tensor) -> bool:
    """Whether rows stand at positions from 0 on, on every axis.

    Args:
        positions: (B, n), (1, n) for all rows alike, or (axes, B, n).
        mask: (B, n), 0 on padding.
    """
    usual, seen = mask.long().cumsum(-1) - 1, mask.bool()
    if positions.dim() not in (2, 3) or positions.shape[-1] != mask.shape[-1]:
        return False
    axes = positions if positions.dim() == 3 else positions[None]
    return all(bool((axis.expand_as(usual) == usual)[seen].all()) for axis in axes)


def _yields_the_usual(
    model: PreTrainedModel, input_ids: Tensor, mask: Tensor, positions: Tensor | None, end: int
) -> bool:
    """The same of the pass at whose end the text has `end` tokens, padding included."""
    more = end - input_ids.shape[1]
    text = torch.cat([input_ids, input_ids[:, -1:].expand(-1, more)], dim=1)
    seen = torch.cat([mask, mask.new_ones((len(mask), more))], dim=1)
    given: dict[str, Any] = {"attention_mask": seen, "past_key_values": _cache_of(input_ids, end - 1 if more else 0)}
    if positions is not None:
        steps = torch.arange(1, more + 1, device=positions.device)
        given["position_ids"] = torch.cat([positions, positions[..., -1:] + steps], dim=-1)
    count = 1 if more else end
    try:
        inputs = model.prepare_inputs_for_generation(  # type: ignore[operator]  # of a mixin, not seen by mypy
            text, next_sequence_length=count, is_first_iteration=not more, use_cache=True, **given
        )
    except Exception:  # of code that is not ours; `generate` will say it
        return False
    ids, at = inputs.pop("input_ids", None), inputs.pop("position_ids", None)
    shown = inputs.pop("attention_mask", None)
    return (
        inputs.get("past_key_values") is given["past_key_values"]
        and not [name for name, value in inputs.items() if value is not None and name not in NOT_OF_THE_TEXT]
        and _equal(ids, text[:, -count:])
        and _equal(shown, seen)
        and (positions is None or _equal(at, given["position_ids"][..., -count:]))
    )


def _func(method: Any) -> Any:
    """The function of a bound method, however a model came by it."""
    return getattr(method, "__func__", method)


def _cache_of(like: Tensor, length: int) -> DynamicCache:
    """A cache that says it holds so many tokens."""
    cache = DynamicCache()
    if length:
        nothing = torch.zeros((len(like), 1, length, 1), device=like.device)
        cache.update(nothing, nothing, 0)
    return cache


def _equal(one: Any, other: Tensor) -> bool:
    return isinstance(one, Tensor) and one.shape == other.shape and bool((one == other).all())
