"""What the decoder layers of Llama-like models (Mistral, Qwen2, Qwen3, Gemma) consist of, for passes of our own.

Only the parts are checked. Whoever computes with them has to compare the result with the model's own: a layer may
combine the same parts in another way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")
"""The model types of this form. Others may have the same parts, and combine them in another way far into a text."""

GEMMAS = ("gemma", "gemma2", "gemma3_text")
"""Those with another activation; the later ones with further norms, the second with a cap of scores."""

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
}


class OtherForm(ValueError):
    """A model whose layers are not those of a Llama; the message names the difference."""


class LlamaLayer(NamedTuple):
    """The parts of a decoder layer.

    Attributes:
        query, key, value, output, gate, up, down: the linear layers.
        attention_norm, mlp_norm: the weights of the norms before attention and before the MLP.
        head_norms: the weights of the norms of each head's query and key (Qwen3, Gemma 3); None where there are none.
        added_norms: the weights of the norms of what attention and the MLP add to the states (Gemma 2 and 3), or None.
        head_dim: the size of a head.
        activation: of the MLP, one of `ACTIVATIONS`.
        epsilon: of all norms.
        scale: factor of the scores of attention.
        cap: that of the scores, cap · tanh(score / cap) (Gemma 2), or None.
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
    added_norms: tuple[Tensor, Tensor] | None
    head_dim: int
    activation: str
    epsilon: float
    scale: float
    cap: float | None


def llama_layers(model: PreTrainedModel, is_linear: Callable[[Any], bool]) -> list[LlamaLayer]:
    """Return the parts of a model's decoder layers.

    Args:
        model: one of transformers.
        is_linear: whether a module is a linear layer of the usual kind.

    Raises:
        OtherForm: it is of another type, or has other parts.
    """
    if model.config.get_text_config(decoder=True).model_type not in LLAMAS + GEMMAS:
        raise OtherForm("is of another type")
    return [_llama_layer(layer, is_linear) for layer in part(model.get_decoder(), "layers")]


def _llama_layer(layer: Any, is_linear: Callable[[Any], bool]) -> LlamaLayer:
    attention, mlp = part(layer, "self_attn"), part(layer, "mlp")
    query, key, value, output = (part(attention, f"{name}_proj") for name in "qkvo")
    gate, up, down = (part(mlp, f"{name}_proj") for name in ("gate", "up", "down"))
    if not all(map(is_linear, (query, key, value, output, gate, up, down))):
        raise OtherForm("has other linear layers")
    added = hasattr(layer, "pre_feedforward_layernorm")
    before_mlp = "pre_feedforward_layernorm" if added else "post_attention_layernorm"
    owners = [(layer, "input_layernorm"), (layer, before_mlp)]
    owners += [(layer, f"post_{name}_layernorm") for name in ("attention", "feedforward") if added]
    owners += [(attention, name) for name in ("q_norm", "k_norm") if hasattr(attention, name)]
    weights, epsilons = zip(*(norm(part(owner, name)) for owner, name in owners), strict=True)
    if len(weights) % 2 or len(set(epsilons)) > 1:
        raise OtherForm("has other norms")
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    return LlamaLayer(
        query,
        key,
        value,
        output,
        gate,
        up,
        down,
        attention_norm=weights[0],
        mlp_norm=weights[1],
        head_norms=pairs[-1] if len(pairs) > 1 + added else None,
        added_norms=pairs[1] if added else None,
        head_dim=int(attention.head_dim),
        activation=_activation(part(mlp, "act_fn")),
        epsilon=epsilons[0],
        scale=float(attention.scaling),
        cap=getattr(attention, "attn_logit_softcapping", None),
    )


def _activation(function: Callable[[Tensor], Tensor]) -> str:
    """Return the name of an activation, whose classes are many.

    Raises:
        OtherForm: it is none of `ACTIVATIONS`.
    """
    x = torch.linspace(-6, 6, 97)
    for name, one in ACTIVATIONS.items():
        if torch.allclose(function(x), one(x), rtol=0, atol=1e-6):
            return name
    raise OtherForm("has another activation")


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
