"""The inputs that `generate` would pass to a model, made by the model's own `prepare_inputs_for_generation`."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from ladechat.model.runners.cache_argument import CACHE

STATE_ARGUMENTS = {CACHE: CACHE, "state": "state", "mems": CACHE}
if CACHE == "past_key_values":
    STATE_ARGUMENTS["cache_params"] = "cache_params"  # recurrent states; later versions call them a cache too
"""The names of the states that models return for the next pass, with the argument that takes each.

Models that return none of these (openai-gpt, reformer) read the whole text in each pass."""


def own_inputs(
    model: PreTrainedModel, ids: torch.Tensor, state: Mapping[str, Any], use_cache: bool = True
) -> dict[str, Any]:
    """Return `generate`'s inputs for a text without padding: its last token, or all of it where there is no state.

    Args:
        model: any decoder-only one.
        ids: (1, n) int64, the whole text.
        state: the state that the pass before returned, by argument names; empty in a first pass.
        use_cache: whether the pass returns a state.
    """
    own: dict[str, Any] = {**state, "attention_mask": torch.ones_like(ids)}
    if "position_ids" in inspect.signature(model.forward).parameters:
        own["position_ids"] = torch.arange(ids.shape[1], device=ids.device)[None]
    inputs: dict[str, Any] = model.prepare_inputs_for_generation(  # type: ignore[operator]  # of a mixin
        ids,
        next_sequence_length=1 if state else None,
        is_first_iteration=not state,
        use_cache=use_cache,
        **own,
    )
    return inputs


def state_of(output: Any) -> dict[str, Any]:
    """Return the state in a pass's output, by the names of the arguments that take it."""
    return {STATE_ARGUMENTS[name]: output[name] for name in STATE_ARGUMENTS if output.get(name) is not None}
