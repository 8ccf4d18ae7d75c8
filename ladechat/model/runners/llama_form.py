"""What the decoder layers of Llama-like models (Mistral, Qwen2, Qwen3) consist of, for passes of our own.

Only the parts are checked. Whoever computes with them has to compare the result with the model's own: a layer may
combine the same parts in another way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn
from transformers import PreTrainedModel

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")
"""The model types of this form. Others may have the same parts, and combine them in another way far into a text."""


class OtherForm(ValueError):
    """A model whose layers are not those of a Llama; the message names the difference."""


class LlamaLayer(NamedTuple):
    """The parts of a decoder layer.

    Attributes:
        query, key, value, output, gate, up, down: the linear layers.
        attention_norm, mlp_norm: the weights of the norms before attention and before the MLP.
        head_norms: the weights of the norms of each head's query and key (Qwen3); None where there are none.
        head_dim: the size of a head.
        epsilon: of all norms.
        scale: factor of the scores of attention.
    """

    query: Any
    key: Any
    value: Any
    output: Any
    gate: Any
    up: Any
    down: Any
    attention_norm: Tensor
    mlp_norm: Tensor
    head_norms: tuple[Tensor, Tensor] | None
    head_dim: int
    epsilon: float
    scale: float


def llama_layers(model: PreTrainedModel, is_linear: Callable[[Any], bool]) -> list[LlamaLayer]:
    """Return the parts of a model's decoder layers.

    Args:
        model: one of transformers.
        is_linear: whether a module is a linear layer of the usual kind.

    Raises:
        OtherForm: it is of another type, or has other parts.
    """
    if model.config.get_text_config(decoder=True).model_type not in LLAMAS:
        raise OtherForm("is of another type")
    return [_llama_layer(layer, is_linear) for layer in part(model.get_decoder(), "layers")]


def _llama_layer(layer: Any, is_linear: Callable[[Any], bool]) -> LlamaLayer:
    attention, mlp = part(layer, "self_attn"), part(layer, "mlp")
    query, key, value, output = (part(attention, f"{name}_proj") for name in "qkvo")
    gate, up, down = (part(mlp, f"{name}_proj") for name in ("gate", "up", "down"))
    if not all(map(is_linear, (query, key, value, output, gate, up, down))):
        raise OtherForm("has other linear layers")
    if not isinstance(part(mlp, "act_fn"), nn.SiLU) and type(mlp.act_fn).__name__ != "SiLUActivation":
        raise OtherForm("has another activation")
    norms = [norm(part(layer, name)) for name in ("input_layernorm", "post_attention_layernorm")]
    norms += [norm(getattr(attention, name)) for name in ("q_norm", "k_norm") if hasattr(attention, name)]
    if len(norms) == 3 or len({epsilon for _, epsilon in norms}) > 1:
        raise OtherForm("has other norms")
    return LlamaLayer(
        query,
        key,
        value,
        output,
        gate,
        up,
        down,
        attention_norm=norms[0][0],
        mlp_norm=norms[1][0],
        head_norms=(norms[2][0], norms[3][0]) if norms[2:] else None,
        head_dim=int(attention.head_dim),
        epsilon=norms[0][1],
        scale=float(attention.scaling),
    )


def part(module: Any, name: str) -> Any:
    """Return a part of a module.

    Raises:
        OtherForm: it has none of that name.
    """
    found = getattr(module, name, None)
    if found is None:
        raise OtherForm(f"has no {name}")
    return found


def norm(module: Any) -> tuple[Tensor, float]:
    """Return the weights of an RMSNorm and its epsilon.

    Raises:
        OtherForm: it is another norm.
    """
    return part(module, "weight"), float(part(module, "variance_epsilon"))
