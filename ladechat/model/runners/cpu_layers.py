"""Decoder layers of Llama-like models on a CPU: each is one call of our kernels, and so is a whole pass.

The model stays transformers' own. A layer whose keys and values do not go into our KV cache, or whose mask is not one
bool matrix over all cached tokens, computes as before, with its parts (see `ladechat.model.kernels.swap`).
"""

import functools
import logging
from collections.abc import Mapping, Sequence
from ctypes import addressof, c_int64
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ladechat.model.kernels.library import Library
from ladechat.model.kernels.structures import ACTIVATIONS, Layer, LayerPass, Model
from ladechat.model.kernels.swap import PackedEmbedding, PackedLinear, RMSNorm, computes_in_integers
from ladechat.model.runners.kv_cache import SlabCache, cache_argument
from ladechat.model.runners.layer_loop import FUSED, LayerLoop
from ladechat.model.runners.llama_form import LlamaLayer, OtherForm, llama_layers
from ladechat.model.runners.slots import Slots

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

    A `LayerLoop` finds the whole pass as a `FusedModel` at the decoder. Afterwards the model cannot be copied: the
    kernels know the addresses of its weights.

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
        setattr(decoder, FUSED, FusedModel(model, fused, library))
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
        self.weights = Layer(*matrices, *at, parts.head_dim, activation, parts.epsilon, parts.scale)
        self.cap = parts.cap or 0.0
        self.shape = parts.key.out_features // parts.head_dim, parts.head_dim

    @property
    def cap(self) -> float:
        """The cap of attention's scores; 0: none."""
        return float(self.weights.cap)

    @cap.setter
    def cap(self, cap: float) -> None:
        self.weights.cap = cap

    def __call__(self, hidden_states: Tensor, *others: Any, **options: Any) -> Any:
        """Return the states (1, T, d) float32 after the layer; keys and values of the slots go into the cache."""
        mask: Any = options.get("attention_mask")
        cache: Any = options.get(self.cache_argument)
        angles: Any = options.get("position_embeddings")
        slots = hidden_states.shape[1]
        fitting = not others and hidden_states.dtype is torch.float32 and hidden_states.shape[::2] == (1, self._width)
        if not fitting or not self.takes(slots, mask, cache, angles) or angles[0].shape[1] != slots:
            return self._usual(hidden_states, *others, **options)
        states, rows = hidden_states.clone(memory_format=torch.contiguous_format), torch.arange(slots)
        given = LayerPass(*self.rows(cache), *_slots(mask, cache, angles, rows.data_ptr()))
        self._library.layer(self.weights, given, states)
        return states

    def rows(self, cache: SlabCache) -> tuple[int, ...]:
        """Return where its keys and values are in a cache: the first fields of a `LayerPass`."""
        keys, values = cache.heads_first(self._index)
        return keys.data_ptr(), values.data_ptr(), *keys.stride()[1:3], *values.stride()[1:3]

    def takes(self, slots: int, mask: Any, cache: Any, angles: Any) -> bool:
        """Return whether the kernels support a pass."""
        return (
            isinstance(cache, SlabCache)
            and isinstance(mask, Tensor)
            and mask.dtype is torch.bool
            and mask.shape == (1, 1, slots, cache.length + slots)
            and mask.stride(3) == 1
            and cache.length + slots <= cache.capacity
            and cache.heads_first(self._index)[0].dtype is torch.float32
            and isinstance(angles, tuple)
            and all(one.shape[::2] == (1, self.shape[1]) and one.is_contiguous() for one in angles)
            and all(one.dtype is torch.float32 for one in angles)
        )


class FusedModel:
    """The pass of a model in one call of the kernels.

    Args:
        model: a model of transformers, with packed embedding and output layer, and the kernels' own norm.
        layers: its decoder layers.
        library: the kernels.

    Attributes:
        best: see `Library.best`.
        largest: see `Library.largest`.

    Raises:
        OtherForm: one of these is another.
    """

    def __init__(self, model: PreTrainedModel, layers: Sequence[FusedLayer], library: Library) -> None:
        decoder: Any = model.get_decoder()
        ends: Any = decoder.embed_tokens, decoder.norm, model.get_output_embeddings()
        if [type(one) for one in ends] != [PackedEmbedding, RMSNorm, PackedLinear]:
            raise OtherForm("has another embedding, final norm or output layer")
        embedding, norm, head = self._ends = ends
        self._layers, self._library = list(layers), library
        self.best, self.largest = library.best, library.largest
        weights = (Layer * len(layers))(*(one.weights for one in layers))
        ended = norm.weight.data_ptr(), norm.variance_epsilon, head.matrix
        self._model = Model(embedding.matrix, embedding.scale, weights, len(layers), *ended)
        self._passes = (LayerPass * len(layers))()
        self._keys: ReferenceType[Tensor] | None = None  # in the cache whose addresses the passes have, of one layer

    def __call__(
        self,
        slots: Slots,
        kinds: Sequence[str | None],
        given: Mapping[str | None, tuple[Any, Any]],
        cache: Any,
        read: int,
    ) -> tuple[Tensor, Tensor] | None:
        """Compute a pass of T slots; their keys and values go into the cache.

        Args:
            slots: after the cached tokens.
            kinds: the kind of each layer.
            given: for each kind, the mask (1, 1, T, cached + T) bool, and the rotary angles of all positions up to the
                highest, (1, P, head_dim) each.
            cache: the KV cache.
            read: the number of slots, the last ones, whose logits are wanted.

        Returns:
            The logits (read, vocabulary), and the (T, d) final hidden states; None where the kernels do not support
            what they are given.
        """
        count, start = len(slots), cache.length
        of_kind = {kind: self._layers[kinds.index(kind)] for kind in given}
        if not all(of_kind[kind].takes(count, mask, cache, angles) for kind, (mask, angles) in given.items()):
            return None
        keys, _ = cache.heads_first(0)
        if self._keys is None or keys is not self._keys():
            self._passes[:] = [LayerPass(*one.rows(cache)) for one in self._layers]
            self._keys = ref(keys)  # a weak one, since a cache may be freed
        rows = (c_int64 * count)(*(start + position for position in slots.positions.tolist()))
        of_slots = {kind: _slots(mask, cache, angles, addressof(rows)) for kind, (mask, angles) in given.items()}
        for one, kind in zip(self._passes, kinds, strict=True):
            one.slots, one.cached, one.cosines, one.sines, one.angles, one.seen, one.seen_slot = of_slots[kind]
        return self._library.whole_pass(self._model, self._passes, slots.tokens, read)


def _slots(mask: Tensor, cache: SlabCache, angles: tuple[Tensor, Tensor], rows: int) -> tuple[int, ...]:
    """Return what slots are given in a layer: the last fields of a `LayerPass`. `rows` is the address of the row in the
    angles of each slot.
    """
    cosines, sines = angles
    at = cosines.data_ptr(), sines.data_ptr(), rows, mask.data_ptr()
    return mask.shape[2], cache.length, *at, mask.stride(2)


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
