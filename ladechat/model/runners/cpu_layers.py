"""Decoder layers of Llama-like models on a CPU: each is one call of our kernels, which computes all of it.

The model stays transformers' own. A layer whose keys and values do not go into our KV cache, or whose mask is not one
bool matrix over all cached tokens, computes as before, with its parts (see `ladechat.model.kernels.swap`).
"""

import functools
import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ladechat.model.kernels.library import ACTIVATIONS, Layer, LayerPass, Library
from ladechat.model.kernels.swap import PackedLinear, computes_in_integers
from ladechat.model.runners.kv_cache import SlabCache, cache_argument
from ladechat.model.runners.layer_loop import LayerLoop
from ladechat.model.runners.llama_form import LlamaLayer, OtherForm, llama_layers

logger = logging.getLogger(__name__)

FAULTS = (OtherForm, RuntimeError, TypeError, ValueError, AttributeError, LookupError)
"""The exceptions of layers that are built or called in another way."""

ALIKE, ALIKE_IN_INTEGERS = 1e-3, 0.1
"""How far a layer of the kernels may be from the model's own, relative to what the layer adds to the states. Where
states are rounded to 8 bits, a difference in the last bit may be rounded up."""

LOW_CAP = 0.01
"""A cap that all scores of attention reach. Under one that they do not reach, whether it is there could not be seen."""


def fuse_layers(model: PreTrainedModel, library: Library) -> bool:
    """Make each decoder layer one call of the kernels, in place; leave a model of another form unchanged.

    Afterwards the model cannot be copied: the kernels know the addresses of its weights.

    Args:
        model: in float32 on a CPU, with packed linear layers.
        library: the kernels.

    Returns:
        Whether its layers are fused.
    """
    decoder: Any = model.get_decoder()
    try:
        parts = llama_layers(model, lambda module: type(module) is PackedLinear)
        fused = [FusedLayer(layer, own, library) for layer, own in zip(decoder.layers, parts, strict=True)]
        _check_layers(model, fused)
    except FAULTS as error:
        logger.info("The layers of %s are computed part by part: %s.", type(model).__name__, error)
        return False
    for layer, one in zip(decoder.layers, fused, strict=True):
        layer.forward = functools.wraps(layer.forward)(one)
    return True


class FusedLayer:
    """The `forward` of a decoder layer in one call of the kernels; where they do not support what it is given, its own.

    Args:
        layer: a module of a transformers model.
        parts: its parts, with packed linear layers.
        library: the kernels.
    """

    def __init__(self, layer: Any, parts: LlamaLayer, library: Library) -> None:
        self._library, self._usual = library, layer.forward
        self._index: int = layer.self_attn.layer_idx
        self.cache_argument = cache_argument(layer.forward)
        self._parts = parts  # keeps the tensors in memory
        self._width: int = parts.query.in_features
        matrices = [getattr(parts, name).matrix for name in Layer.MATRICES]
        after_attention, after_mlp = parts.added_norms or (None, None)
        norms = [parts.attention_norm, *(parts.head_norms or (None, None)), after_attention, parts.mlp_norm, after_mlp]
        at = [None if weight is None else weight.data_ptr() for weight in norms]
        activation = ACTIVATIONS.index(parts.activation)
        self._layer = Layer(*matrices, *at, parts.head_dim, activation, parts.epsilon, parts.scale)
        self.cap = parts.cap or 0.0
        self.shape = parts.key.out_features // parts.head_dim, parts.head_dim

    @property
    def cap(self) -> float:
        """The cap of attention's scores; 0: none."""
        return float(self._layer.cap)

    @cap.setter
    def cap(self, cap: float) -> None:
        self._layer.cap = cap

    def __call__(self, hidden_states: Tensor, *others: Any, **options: Any) -> Any:
        """Return the states (1, T, d) float32 after the layer; keys and values of the slots go into the cache."""
        mask: Any = options.get("attention_mask")
        cache: Any = options.get(self.cache_argument)
        angles: Any = options.get("position_embeddings")
        if others or not self._takes(hidden_states, mask, cache, angles):
            return self._usual(hidden_states, *others, **options)
        keys, values = cache.heads_first(self._index)
        cosines, sines = angles
        slots = hidden_states.shape[1]
        states = hidden_states.clone(memory_format=torch.contiguous_format)
        given = LayerPass(
            slots, cache.length, cosines.data_ptr(), sines.data_ptr(), keys.data_ptr(), values.data_ptr(),
            *keys.stride()[1:3], *values.stride()[1:3], mask.data_ptr(), mask.stride(2),
        )  # fmt: skip
        self._library.layer(self._layer, given, states)
        return states

    def _takes(self, states: Tensor, mask: Any, cache: Any, angles: Any) -> bool:
        return (
            isinstance(cache, SlabCache)
            and isinstance(mask, Tensor)
            and mask.dtype is torch.bool
            and mask.shape == (1, 1, states.shape[1], cache.length + states.shape[1])
            and mask.stride(3) == 1
            and states.dtype is torch.float32
            and states.shape[::2] == (1, self._width)
            and cache.length + states.shape[1] <= cache.capacity
            and cache.heads_first(self._index)[0].dtype is torch.float32
            and isinstance(angles, tuple)
            and all(one.shape == (1, states.shape[1], self.shape[1]) and one.is_contiguous() for one in angles)
            and all(one.dtype is torch.float32 for one in angles)
        )


def _check_layers(model: PreTrainedModel, fused: Sequence[FusedLayer]) -> None:
    """Compare layers with the model's own. Where there is a cap, also with one so low that all scores reach it.

    Raises:
        OtherForm: they compute something else.
    """
    _compare(model, fused)
    caps = [one.cap for one in fused]
    if any(caps):
        try:
            _set_caps(model, fused, [LOW_CAP] * len(fused))
            _compare(model, fused)
        finally:
            _set_caps(model, fused, caps)


def _set_caps(model: PreTrainedModel, fused: Sequence[FusedLayer], caps: Sequence[float]) -> None:
    decoder: Any = model.get_decoder()
    for layer, one, cap in zip(decoder.layers, fused, caps, strict=True):
        one.cap, layer.self_attn.attn_logit_softcapping = cap, cap or None


@torch.inference_mode()
def _compare(model: PreTrainedModel, fused: Sequence[FusedLayer]) -> None:
    """Compare layers with the model's own, over two tokens and then two leaves that do not see each other.

    Raises:
        OtherForm: they compute something else.
    """
    decoder: Any = model.get_decoder()
    loop = LayerLoop(model, {})
    dice = torch.Generator().manual_seed(0)
    states = torch.randn(1, 2, loop.width, generator=dice)
    passes = [([0, 1], [[1, 0], [1, 1]]), ([2, 2], [[1, 1, 1, 0], [1, 1, 0, 1]])]
    caches = [SlabCache([(one.shape, one.shape) for one in fused], torch.float32, states.device, 8) for _ in range(2)]
    allowed = ALIKE_IN_INTEGERS if computes_in_integers(model) else ALIKE
    for own_positions, seen in passes:
        positions, mask = torch.tensor([own_positions]), torch.tensor(seen, dtype=torch.bool)[None, None]
        angles = loop.angles(states, positions)
        for layer, one, kind in zip(decoder.layers, fused, loop.kinds, strict=True):
            options = {
                "attention_mask": mask,
                "position_ids": positions,
                "position_embeddings": angles[kind],
                "use_cache": True,
            }
            usual, ours = (
                run(states, **options, **{one.cache_argument: cache})
                for run, cache in zip((layer.forward, one), caches, strict=True)
            )
            usual = usual[0] if isinstance(usual, tuple) else usual
            if not (ours - usual).norm() <= allowed * (usual - states).norm():  # true for NaN
                raise OtherForm("they compute something else than their parts")
        for cache in caches:
            cache.commit([0, 1])
