"""The shapes that a model caches per token, found by running it, because not all configurations tell them."""

from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from ladechat.model.kernels.swap import ATTENTION
from ladechat.model.runners.cache_argument import cache_argument
from ladechat.model.runners.random_numbers import DrawsRandomNumbers, NoRandomNumbers

PLACE_DEPENDENT = {
    "gpt_neo": "cuts its local layers by the place of a token in the cache, whatever mask it gets",
    "llama4": "has chunked attention, and scales it by the place of a token in the cache",
    "llama4_text": "has chunked attention, and scales it by the place of a token in the cache",
}
"""Model types that a short check does not find, because they differ only in long texts, with the reason."""

MASKED_ATTENTION = (None, "eager", "sdpa", ATTENTION)
"""Attention implementations that take a mask of what each slot sees."""

RECURRENT = "keeps a recurrent state, in which a drafted token cannot be undone"


class UnsupportedModel(ValueError):
    """A model that cannot be decoded at all, with the reason."""


class SingleTokenOnly(ValueError):
    """A model that cannot verify several tokens in one pass, with the reason; it can still generate one by one."""


@dataclass(frozen=True)
class LayerShape:
    """The (heads, head_dim) of a layer's keys and values, its kind, its sliding window if it has one, and its type."""

    keys: tuple[int, int]
    values: tuple[int, int]
    kind: str
    window: int | None
    dtype: torch.dtype


@torch.inference_mode()
def probe_cache(model: PreTrainedModel) -> list[LayerShape]:
    """Return the shapes of the cache layers after a pass over one token.

    Raises:
        UnsupportedModel: an encoder-decoder.
        SingleTokenOnly: the model carries something other than keys and values from token to token, or nothing.
    """
    if model.config.is_encoder_decoder:
        raise UnsupportedModel(f"{name_of(model)} is an encoder-decoder model; ladechat needs a decoder-only one.")
    if model.config.model_type in PLACE_DEPENDENT:
        raise single_token_only(model, PLACE_DEPENDENT[model.config.model_type])
    attention = model.config._attn_implementation
    if attention not in MASKED_ATTENTION:
        raise single_token_only(model, f"was loaded with {attention!r} attention, which takes no mask ('sdpa' does)")
    token = torch.zeros((1, 1), dtype=torch.long, device=model.device)
    try:
        cache = DynamicCache(config=model.config)
        with NoRandomNumbers():  # type: ignore[no-untyped-call]  # torch leaves it untyped
            model(input_ids=token, use_cache=True, **{cache_argument(model.forward): cache})
    except DrawsRandomNumbers as error:
        raise single_token_only(model, "draws random numbers in its passes") from error
    except (TypeError, ValueError) as error:  # no argument for it, or the model's own refusal
        reason = RECURRENT if _is_stateful(model) else "has a cache of its own kind, or none"
        raise single_token_only(model, reason) from error
    layers: list[Any] = list(cache.layers)
    if any(hasattr(layer, "recurrent_states") for layer in layers):
        raise single_token_only(model, RECURRENT)
    if any(type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers):
        reason = "caches a digest of the text besides keys and values, to choose what it attends to"
        raise single_token_only(model, reason)
    if not layers or any(layer.keys is None or layer.values is None for layer in layers):
        reason = RECURRENT if _is_stateful(model) else "does not cache keys and values in every layer"
        raise single_token_only(model, reason)
    text = model.config.get_text_config(decoder=True)
    if any(layer.is_sliding for layer in layers) and not _knows_windows(text):
        raise single_token_only(model, "is given a sliding window that it has no masks for: only its cache forgets")
    kinds = getattr(text, "layer_types", None) or [_kind(layer) for layer in layers]
    return [_layer_shape(layer, kind) for layer, kind in zip(layers, kinds, strict=False)]


def single_token_only(model: PreTrainedModel, reason: str) -> SingleTokenOnly:
    """Return the error for a model that decodes one token per pass, with a reason that follows its name."""
    return SingleTokenOnly(f"{name_of(model)} {reason}, so it writes one token a pass.")


def name_of(model: PreTrainedModel) -> str:
    """Return a model's name in messages."""
    return f"{type(model).__name__} (model type {model.config.model_type!r})"


def _knows_windows(config: Any) -> bool:
    """Return whether this configuration class itself has a sliding window, rather than an attribute added to it.

    transformers builds a sliding cache for any configuration with such an attribute.
    """
    return hasattr(type(config), "sliding_window") or getattr(config, "layer_types", None) is not None


def _is_stateful(model: PreTrainedModel) -> bool:
    return bool(getattr(model, "_is_stateful", False))


def _kind(layer: Any) -> str:
    return "sliding_attention" if layer.is_sliding else "full_attention"


def _layer_shape(layer: Any, kind: str) -> LayerShape:
    keys, values = layer.keys, layer.values
    window = getattr(layer, "sliding_window", None)
    return LayerShape((keys.shape[1], keys.shape[3]), (values.shape[1], values.shape[3]), kind, window, keys.dtype)
