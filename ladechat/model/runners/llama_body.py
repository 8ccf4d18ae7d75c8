"""The pass of a Llama, or of a model that is built like one, in fewer and larger operations than transformers' own.

Queries, keys and values come from one product with a matrix, and so do the two halves of the MLP's input. All
operations between the attention of two layers are one function, `between`, that torch's compiler can fuse: it is
compiled twice, for one slot and for several, and serves all layers and all contexts.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from ladechat.model.runners.attention import WAYS, AttentionInputs, Bias
from ladechat.model.runners.fixed_pass import Given, as_bias, places_of, seen_places

TYPES = ("llama", "mistral", "qwen2", "qwen3")

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


class Shape(NamedTuple):
    """The same in all layers: query heads, key heads, head_dim, and the ε of the norms."""

    heads: int
    key_heads: int
    head_dim: int
    epsilon: float


class Layer(NamedTuple):
    """The weights of one layer; matrices with the same input are merged."""

    norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: Tensor
    gate_up_bias: Tensor | None
    down: Tensor
    down_bias: Tensor | None


class Heads(NamedTuple):
    """Queries (T, heads, head_dim), keys and values (T, key heads, head_dim) of the slots, positions applied."""

    queries: Tensor
    keys: Tensor
    values: Tensor


def before(x: Tensor, layer: Layer, cosine: Tensor, sine: Tensor, shape: Shape) -> Heads:
    """Queries, keys and values from the (T, width) states. Cosine and sine: (T, 1, head_dim), see `LlamaBody`."""
    mixed = functional.linear(
        functional.rms_norm(x, x.shape[-1:], layer.norm, shape.epsilon), layer.qkv, layer.qkv_bias
    )
    heads = mixed.view(x.shape[0], shape.heads + 2 * shape.key_heads, shape.head_dim)
    queries, keys, values = torch.split(heads, [shape.heads, shape.key_heads, shape.key_heads], 1)
    if layer.q_norm is not None and layer.k_norm is not None:
        queries = functional.rms_norm(queries, queries.shape[-1:], layer.q_norm, shape.epsilon)
        keys = functional.rms_norm(keys, keys.shape[-1:], layer.k_norm, shape.epsilon)
    queries, keys = (part * cosine + part.roll(shape.head_dim // 2, -1) * sine for part in (queries, keys))
    return Heads(queries, keys, values)


def after(x: Tensor, attended: Tensor, layer: Layer, shape: Shape) -> Tensor:
    """The (T, width) states after a layer, from those before it and its (T, heads · head_dim) attention."""
    x = x + functional.linear(attended, layer.out, layer.out_bias)
    normal = functional.rms_norm(x, x.shape[-1:], layer.mlp_norm, shape.epsilon)
    gate, up = functional.linear(normal, layer.gate_up, layer.gate_up_bias).chunk(2, -1)
    return x + functional.linear(functional.silu(gate) * up, layer.down, layer.down_bias)


def between(
    x: Tensor, attended: Tensor, layer: Layer, following: Layer, cosine: Tensor, sine: Tensor, shape: Shape
) -> tuple[Tensor, Heads]:
    """From the attention of one layer to the attention inputs of the next."""
    x = after(x, attended, layer, shape)
    return x, before(x, following, cosine, sine, shape)


def last(x: Tensor, attended: Tensor, layer: Layer, norm: Tensor, head: Tensor, shape: Shape) -> Tensor:
    """From the attention of the last layer to the (T, vocabulary) logits."""
    return functional.linear(
        functional.rms_norm(after(x, attended, layer, shape), x.shape[-1:], norm, shape.epsilon), head
    )


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """No compiler: the function as it is."""
    return function


class LlamaBody:
    """A Llama-like model as a `Body`. The model's merged matrices become views of one: none is held twice.

    Args:
        model: one that it `takes`.
        compiler: makes a function faster.
    """

    def __init__(self, model: PreTrainedModel, compiler: Compile = uncompiled) -> None:
        network: Any = model.model
        config = model.config
        attention = network.layers[0].self_attn
        self.shape = Shape(
            config.num_attention_heads, config.num_key_value_heads, attention.head_dim, config.rms_norm_eps
        )
        self._scale = attention.scaling
        self._rotary = network.rotary_emb
        self._embedding, self._norm, self._head = network.embed_tokens.weight, network.norm.weight, _head(model).weight
        self._layers = [_layer(layer) for layer in network.layers]
        self._before, self._between, self._last = (compiler(function) for function in (before, between, last))

    @staticmethod
    def takes(model: PreTrainedModel) -> bool:
        """Whether a model is built as this class computes it, on one device, with plain matrices."""
        network, head = getattr(model, "model", None), _head(model)
        if model.config.model_type not in TYPES or network is None or model.config.hidden_act != "silu":
            return False
        linear = [part for layer in network.layers for part in _matrices(layer)]
        plain = all(type(part) is nn.Linear for part in [*linear, head]) and head.bias is None
        unhooked = not any(hasattr(part, "_hf_hook") for part in model.modules())
        return plain and unhooked and len({parameter.device for parameter in model.parameters()}) == 1

    def __call__(self, given: Given, rows: Sequence[Tensor], way: str) -> Tensor:
        """See `ladechat.model.runners.fixed_pass.Body`."""
        slots, context = given.sees.shape[0], rows[0].shape[0]
        x = functional.embedding(given.tokens[0], self._embedding)
        cosine, sine = (angles[0, :, None] for angles in self._rotary(x, given.positions))
        half = self.shape.head_dim // 2
        sine = torch.cat([-sine[..., :half], sine[..., half:]], -1)  # so that a roll does the rotation
        groups = self.shape.heads // self.shape.key_heads
        bias = Bias(
            given.cached,
            as_bias(seen_places(given, context, None), x.dtype).repeat(groups, 1),
            as_bias(given.sees, x.dtype).repeat(groups, 1),
        )
        places, attend, layers = places_of(given), WAYS[way], self._layers
        if slots > 1:  # one compiled function for any number of them
            for tensor in (x, cosine, sine):
                torch._dynamo.maybe_mark_dynamic(tensor, 0)
        heads = self._before(x, layers[0], cosine, sine, self.shape)
        for index, (keys, values) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
            keys.index_copy_(0, places, heads.keys)
            values.index_copy_(0, places, heads.values)
            # (T, heads, dim) to (key heads, groups · T, dim) and back
            rows_of = heads.queries.view(slots, -1, groups, self.shape.head_dim).permute(1, 2, 0, 3).flatten(1, 2)
            seen = attend(AttentionInputs(rows_of, keys, values, heads.keys, heads.values, bias, self._scale))
            attended = seen.view(-1, groups, slots, self.shape.head_dim).permute(2, 0, 1, 3).reshape(slots, -1)
            if slots > 1:
                torch._dynamo.maybe_mark_dynamic(attended, 0)
            if index + 1 < len(layers):
                x, heads = self._between(x, attended, layers[index], layers[index + 1], cosine, sine, self.shape)
        logits: Tensor = self._last(x, attended, layers[-1], self._norm, self._head, self.shape)
        return logits


def _head(model: PreTrainedModel) -> Any:
    return model.get_output_embeddings()


def _matrices(layer: Any) -> list[nn.Linear]:
    attention, mlp = layer.self_attn, layer.mlp
    own = (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
    return [*own, mlp.gate_proj, mlp.up_proj, mlp.down_proj]


def _layer(layer: Any) -> Layer:
    query, key, value, out, gate, up, down = _matrices(layer)
    attention = layer.self_attn
    return Layer(
        norm=layer.input_layernorm.weight,
        qkv=_in_one(query, key, value),
        qkv_bias=_biases(query, key, value),
        q_norm=attention.q_norm.weight if hasattr(attention, "q_norm") else None,
        k_norm=attention.k_norm.weight if hasattr(attention, "k_norm") else None,
        out=out.weight,
        out_bias=out.bias,
        mlp_norm=layer.post_attention_layernorm.weight,
        gate_up=_in_one(gate, up),
        gate_up_bias=_biases(gate, up),
        down=down.weight,
        down_bias=down.bias,
    )


@torch.inference_mode(mode=False)  # the model may go on outside of it
@torch.no_grad()
def _in_one(*matrices: nn.Linear) -> Tensor:
    """Their weights one below the other; each matrix becomes a view of the result."""
    whole = torch.cat([matrix.weight.data for matrix in matrices])
    for matrix, part in zip(matrices, torch.split(whole, [one.out_features for one in matrices]), strict=True):
        matrix.weight.data = part
    return whole


@torch.inference_mode(mode=False)
@torch.no_grad()
def _biases(*matrices: nn.Linear) -> Tensor | None:
    biases = [matrix.bias.data for matrix in matrices if matrix.bias is not None]
    return torch.cat(biases) if biases else None
