"""The shapes that a model caches per token, found by running it, because not all configurations tell them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from ladechat.model.kernels.swap import ATTENTION
from ladechat.model.runners.kv_cache import cache_argument

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
    token, stateful = torch.zeros((1, 1), dtype=torch.long, device=model.device), getattr(model, "_is_stateful", False)
    try:
        cache = DynamicCache(config=model.config)
        with NoRandomNumbers():  # type: ignore[no-untyped-call]  # torch leaves it untyped
            model(input_ids=token, use_cache=True, **{cache_argument(model.forward): cache})
    except DrawsRandomNumbers as error:
        raise single_token_only(model, "draws random numbers in its passes") from error
    except (TypeError, ValueError) as error:  # no argument for it, or the model's own refusal
        reason = RECURRENT if stateful else "has a cache of its own kind, or none"
        raise single_token_only(model, reason) from error
    layers: list[Any] = list(cache.layers)
    if any(hasattr(layer, "recurrent_states") for layer in layers):
        raise single_token_only(model, RECURRENT)
    if any(type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers):
        reason = "caches a digest of the text besides keys and values, to choose what it attends to"
        raise single_token_only(model, reason)
    if not layers or any(layer.keys is None or layer.values is None for layer in layers):
        reason = RECURRENT if stateful else "does not cache keys and values in every layer"
        raise single_token_only(model, reason)
    text = model.config.get_text_config(decoder=True)
    # transformers builds a sliding cache for any configuration to which such an attribute was added.
    knows_windows = hasattr(type(text), "sliding_window") or getattr(text, "layer_types", None) is not None
    if any(layer.is_sliding for layer in layers) and not knows_windows:
        raise single_token_only(model, "is given a sliding window that it has no masks for: only its cache forgets")
    kinds = getattr(text, "layer_types", None)
    kinds = kinds or ["sliding_attention" if layer.is_sliding else "full_attention" for layer in layers]
    return [_layer_shape(layer, kind) for layer, kind in zip(layers, kinds, strict=False)]


def single_token_only(model: PreTrainedModel, reason: str) -> SingleTokenOnly:
    """Return the error for a model that decodes one token per pass, with a reason that follows its name."""
    return SingleTokenOnly(f"{name_of(model)} {reason}, so it writes one token a pass.")


def name_of(model: PreTrainedModel) -> str:
    """Return a model's name in messages."""
    return f"{type(model).__name__} (model type {model.config.model_type!r})"


def _layer_shape(layer: Any, kind: str) -> LayerShape:
    keys, values = layer.keys, layer.values
    window = getattr(layer, "sliding_window", None)
    return LayerShape((keys.shape[1], keys.shape[3]), (values.shape[1], values.shape[3]), kind, window, keys.dtype)


class DrawsRandomNumbers(Exception):
    """An operation that was about to draw."""


class NoRandomNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """A context in which an operation of this thread that would draw raises `DrawsRandomNumbers`.

    Unlike `torch.random.fork_rng` it restores no generator state: other threads draw from the same generator.
    """

    def __torch_dispatch__(
        self, func: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded in func.tags and not _drops_nothing(func, args, given):
            raise DrawsRandomNumbers(str(func))
        return func(*args, **given)


def _drops_nothing(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the operation is dropout, or attention with dropout, that is turned off."""
    values = {
        argument.name: argument.default_value for argument in func._schema.arguments if argument.has_default_value()
    }
    values |= dict(zip((argument.name for argument in func._schema.arguments), args, strict=False)) | dict(kwargs)
    return any(name in values and not values[name] for name in ("dropout_p", "train", "training", "p"))
