"""The pass of a Llama-like model in few kernels, as a function with fixed shapes and addresses.

It uses the model's own weights: query, key and value projections are fused into one matrix, gate and up into another,
of which the model's linear layers then hold views.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear
from transformers import PreTrainedModel

from ladechat.decoder.hidden import TransferMaps
from ladechat.model.runners import cuda_products
from ladechat.model.runners.cuda_kernels import PLACES, add_and_norm, attend, rotate_and_store, silu_times
from ladechat.model.runners.fixed_pass import WHOLE, PassInputs, Variant
from ladechat.model.runners.llama_form import LlamaLayer, OtherForm, llama_layers, norm, part

PROGRAMS_A_CORE = 2
"""Attention programs per multiprocessor, which set the number of parts into which the cache is split."""

MOST_PARTS = 32


@dataclass(frozen=True)
class _Layer:
    """The weights of a decoder layer."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    head_norms: tuple[Tensor, Tensor] | None
    output: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


class LlamaPass:
    """A Llama-like model (also Mistral, Qwen2, Qwen3) as a function of tensors only.

    Only the model's parts are checked; the caller has to compare the logits with the model's own.

    Args:
        model: in evaluation mode, on a CUDA device (or on a CPU, where Triton interprets the kernels).

    Raises:
        OtherForm: the model has other parts.
    """

    whole_cache: ClassVar[bool] = True

    def __init__(self, model: PreTrainedModel) -> None:
        decoder: Any = model.get_decoder()
        for name in ("embed_tokens", "layers", "norm", "rotary_emb"):
            part(decoder, name)
        layers = [_checked(layer) for layer in llama_layers(model, _is_plain)]  # all, before weights are moved
        self._width: int = layers[0].head_dim
        self._scale = layers[0].scale
        self._frequencies: Tensor = part(decoder.rotary_emb, "inv_freq")
        self._scaling = float(getattr(decoder.rotary_emb, "attention_scaling", 1.0))
        if self._frequencies.dim() != 1 or 2 * len(self._frequencies) != self._width:
            raise OtherForm("rotates a part of each head")
        self._embedding: Tensor = decoder.embed_tokens.weight
        self._norm, self._eps = norm(decoder.norm)
        head: Any = model.get_output_embeddings()
        if not _is_plain(head) or head.bias is not None:
            raise OtherForm("has another output layer")
        self._head: Tensor = head.weight
        self._layers: list[_Layer] = [_fused(layer) for layer in layers]
        self._kv_heads: int = (len(self._layers[0].qkv) - self._layers[0].output.shape[1]) // (2 * self._width)
        self._heads: int = self._layers[0].output.shape[1] // self._width
        on_card = model.device.type == "cuda"
        self._cores: int = torch.cuda.get_device_properties(model.device).multi_processor_count if on_card else 1

    @torch.inference_mode()
    def __call__(self, given: PassInputs, rows: Sequence[Tensor], variant: Variant = WHOLE) -> tuple[Tensor, Tensor]:
        hidden = embedding(given.tokens[0], self._embedding)
        more, normed = None, torch.empty_like(hidden)
        inner = hidden.new_empty((len(hidden), self._layers[0].down.shape[1]))
        for index, layer in enumerate(self._layers):
            if index in variant.skipped:
                continue
            add_and_norm(hidden, more, layer.attention_norm, self._eps, normed)
            if variant.maps and index in variant.maps.layers:
                enter(hidden, given, variant.maps, index)
                add_and_norm(hidden, None, layer.attention_norm, self._eps, normed)
            attended = self._attended(given, layer, normed, *rows[2 * index : 2 * index + 2])
            more = self._product(attended, layer.output, summed=True)
            add_and_norm(hidden, more, layer.mlp_norm, self._eps, normed)
            silu_times(self._product(normed, layer.gate_up), inner)
            more = self._product(inner, layer.down, summed=True)
        add_and_norm(hidden, more, self._norm, self._eps, normed)
        return self._product(normed, self._head), normed

    def best(self, logits: Tensor) -> Tensor:
        return cuda_products.best(logits)

    def _attended(self, given: PassInputs, layer: _Layer, normed: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return the (T, heads · head_dim) attention output for normed (T, d) hidden states."""
        query = normed.new_empty((len(normed), self._heads, self._width))
        attended = normed.new_empty((len(normed), self._heads * self._width))
        rotate_and_store(
            self._product(normed, layer.qkv, layer.qkv_bias), self._frequencies, given.positions[0], given.cached,
            query, keys, values, self._scaling, layer.head_norms, self._eps,
        )  # fmt: skip
        attend(query, keys, values, given.sees, given.cached, self._scale, self._parts(len(normed)), attended)
        return attended

    def _product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None, summed: bool = False) -> Tensor:
        """Apply a linear layer; the result may be in parts where it is `summed` next."""
        if not cuda_products.has_own_product(x):
            return linear(x, weight, bias)
        parts = cuda_products.parts_of_product(len(weight), self._cores) if summed else 1
        return cuda_products.product(x, weight, bias, parts)

    def _parts(self, slots: int) -> int:
        """Return into how many parts attention splits the cache, so that the whole GPU has work."""
        tiles = max(1, slots * (self._heads // self._kv_heads) // PLACES)
        return max(1, min(MOST_PARTS, PROGRAMS_A_CORE * self._cores // (self._kv_heads * tiles)))


def enter(hidden: Tensor, given: PassInputs, maps: TransferMaps, layer: int) -> None:
    """Write the pseudo rows that enter before a layer into the (T, d) hidden states, in place.

    Until then their places hold the states of any token, which no slot and no row that has entered sees.
    """
    for step, at in enumerate(maps.layers):
        if at == layer:
            made = linear(hidden.index_select(0, given.carriers), maps.weights[step])
            hidden.copy_(torch.where((given.steps == step)[:, None], made, hidden))


def _is_plain(module: Any) -> bool:
    """Return whether it is a linear layer with plain weights: not quantised, nor another tensor subclass."""
    return type(module) is nn.Linear and type(module.weight.data) is Tensor


def _checked(layer: LlamaLayer) -> LlamaLayer:
    """Return the parts of a layer whose form and biases the kernels support.

    Raises:
        OtherForm: they do not.
    """
    if layer.activation != "silu" or layer.added_norms or layer.cap:
        raise OtherForm("has the form of Gemma")
    biases = [one.bias is not None for one in (layer.query, layer.key, layer.value)]
    if len(set(biases)) > 1 or any(one.bias is not None for one in (layer.output, layer.gate, layer.up, layer.down)):
        raise OtherForm("has other biases")
    return layer


def _fused(layer: LlamaLayer) -> _Layer:
    qkv, bias = _fuse([layer.query, layer.key, layer.value])
    gate_up, _ = _fuse([layer.gate, layer.up])
    return _Layer(
        attention_norm=layer.attention_norm,
        qkv=qkv,
        qkv_bias=bias,
        head_norms=layer.head_norms,
        output=layer.output.weight,
        mlp_norm=layer.mlp_norm,
        gate_up=gate_up,
        down=layer.down.weight,
    )


@torch.no_grad()
def _fuse(linears: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Fuse linear layers; return one weight, of which the layers then hold views, and one bias."""
    weights = [linear.weight.data for linear in linears]
    weight = _whole(weights)
    if weight is None:
        weight = torch.cat(weights)
        for linear, own in zip(linears, torch.split(weight, [len(one) for one in weights]), strict=True):
            linear.weight.data = own
    biases = [linear.bias.data for linear in linears if linear.bias is not None]
    return weight, torch.cat(biases) if biases else None


def _whole(weights: Sequence[Tensor]) -> Tensor | None:
    """Return the tensor of which these are consecutive parts; None if they are not."""
    first, storage = weights[0], weights[0].untyped_storage()
    ends = [one.data_ptr() + one.nbytes for one in weights]
    together = all(one.data_ptr() == end for one, end in zip(weights[1:], ends, strict=False))
    if not together or any(one.untyped_storage().data_ptr() != storage.data_ptr() for one in weights):
        return None
    return first.as_strided((sum(len(one) for one in weights), first.shape[1]), first.stride(), first.storage_offset())
