"""Makes an unmodified transformers model compute its linear layers, norms and attention with the kernels."""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.pytorch_utils import Conv1D

from ladechat.model.kernels.large_pages import LargePages
from ladechat.model.kernels.library import Library
from ladechat.model.kernels.packing import FLOATS, INTEGERS, TILED, Packed, pack
from ladechat.model.kernels.soft_cap import attention_for, capped_attention
from ladechat.model.kernels.structures import Matrix

ATTENTION = "ladechat"
"""The name of our attention in transformers' registry."""


class PackedLinear(nn.Module):
    """A linear layer whose weights are stored in the order in which the kernel reads them, see `pack`.

    The original layer is an `nn.Linear`, or a `Conv1D`, whose weights are transposed.
    """

    def __init__(self, packed: Packed, linear: nn.Module, library: Library) -> None:
        super().__init__()
        self.register_buffer("packed", packed.data)
        self._packed = packed
        self._transposed = isinstance(linear, Conv1D)
        self.bias = linear.bias
        self.in_features, self.out_features = packed.inner, packed.columns
        self.rounds, self.tiled = packed.kind in INTEGERS, packed.kind == TILED
        bias: Any = linear.bias
        if bias is not None:
            bias.data = bias.data.float()
        self.matrix = Matrix.of(packed, bias)
        self._product = library.product(self.matrix)

    @property
    def weight(self) -> Tensor:
        """The weights in their original layout: a new tensor, for models that also read them elsewhere."""
        weight = self._packed.weight()
        return weight.t() if self._transposed else weight

    def forward(self, x: Tensor) -> Tensor:
        """Map x (…, in_features) float32 to (…, out_features) float32."""
        return self._product(x)


class PackedEmbedding(nn.Module):
    """An embedding with packed weights: those of the output layer, or its own.

    Attributes:
        matrix: its vectors, as columns.
        scale: by which they are multiplied.
    """

    def __init__(self, packed: Packed, embedding: nn.Embedding, library: Library) -> None:
        super().__init__()
        self.register_buffer("packed", packed.data)
        self._packed, self._library, self.matrix = packed, library, Matrix.of(packed)
        self.num_embeddings, self.embedding_dim = embedding.num_embeddings, embedding.embedding_dim
        scale: Any = getattr(embedding, "embed_scale", 1.0)  # which is rounded, where weights are read in 16 bits
        self.scale = float(getattr(embedding, "scalar_embed_scale", scale))

    @property
    def weight(self) -> Tensor:
        """The weights in their original layout: a new tensor."""
        return self._packed.weight()

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (…) int64 to (…, embedding_dim) float32."""
        vectors = self._library.columns(self.matrix, tokens)
        return vectors if self.scale == 1.0 else vectors * self.scale


class RMSNorm(nn.Module):
    """A model's RMSNorm, computed by the kernel.

    Args:
        weight: (width,) float32, by which the normed numbers are multiplied.
        epsilon: added to the mean of the squares.
        library: the kernels.
    """

    def __init__(self, weight: Tensor, epsilon: float, library: Library) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(weight, requires_grad=False), epsilon
        self._library, self._weight = library, weight

    def forward(self, x: Tensor) -> Tensor:
        """Return the norm of x (…, width) float32, of the same shape."""
        return self._library.norm(x, self._weight, self.variance_epsilon)


def computes_in_integers(model: nn.Module) -> bool:
    """Return whether some linear layers of a model have integers as weights, and so round what they are given."""
    return any(isinstance(one, PackedLinear) and one.rounds for one in model.modules())


def products_of(model: nn.Module, library: Library) -> str:
    """Return the name of the processor's instructions by which a model's linear layers are computed."""
    tiled = any(isinstance(one, PackedLinear) and one.tiled for one in model.modules())
    return "AMX" if tiled else library.instructions


@torch.no_grad()
def round_weights_as(quantised: nn.Module, model: nn.Module) -> None:
    """Give a model the weights of linear layers as another one, of the same form, has rounded them."""
    for name, layer in quantised.named_modules():
        if isinstance(layer, PackedLinear) and layer.rounds:
            weight: Any = model.get_submodule(name).weight
            weight.copy_(layer.weight)


def made_for_kernels(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether the kernels support a model on this device, in this type."""
    return device.type == "cpu" and dtype == torch.float32


def use_kernels(model: PreTrainedModel, library: Library, quantize: str | None = None) -> None:
    """Make a model on a CPU compute with the kernels, in float32, in place.

    Where the kernels multiply with more than half of the weights, torch gets one thread, in the whole process. Further
    ones would busy-wait for its next operation on the cores that the kernels need: with two on two cores, a pass took 7
    to 20 % longer, and a prompt 30 to 60 % (SmolLM2-135M, 50 to 1,000 tokens).

    Args:
        model: in float32, or in the 16 bits of its checkpoint, which is half of the memory until it is packed.
        library: the kernels.
        quantize: "int8" or "int4" to round its weights to integers.
    """
    swap(model, library, quantize)
    if packed_share(model) > 1 / 2:
        torch.set_num_threads(1)


def packed_share(model: PreTrainedModel) -> float:
    """Return the share of the weights, except embeddings, that the kernels use: not quantised ones, nor experts."""
    modules = list(model.modules())
    layers = [one for one in modules if isinstance(one, PackedLinear)]
    packed = {one.matrix.packed: one.in_features * one.out_features for one in layers}  # by address: some share weights
    looked_up = {id(one.weight) for one in modules if isinstance(one, nn.Embedding)}
    left = [one.numel() for one in model.parameters() if one.dim() > 1 and id(one) not in looked_up]
    return sum(packed.values()) / (sum(packed.values()) + sum(left) or 1)


@torch.no_grad()
def swap(model: PreTrainedModel, library: Library, quantize: str | None = None) -> None:
    """Replace the linear layers, norms and attention of a model. Each layer's weights are freed once it is packed.

    With `quantize`, "int8" or "int4", they are rounded to integers: those of the output layer to 8 bits always.
    """
    room = LargePages()
    head: Any = model.get_output_embeddings()
    output, inputs = (id(getattr(one, "weight", None)) for one in (head, model.get_input_embeddings()))
    embeddings = {id(module.weight): name for name, module in model.named_modules() if _is_embedding(module)}
    layers: dict[int, list[str]] = {}  # by their weights, which several may share
    for name, module in model.named_modules(remove_duplicate=False):
        if _can_be_packed(module):
            layers.setdefault(id(module.weight), []).append(name)
    for weight, names in layers.items():
        linear: Any = model.get_submodule(names[0])
        how = quantize and ("int8" if weight == output else quantize)
        own = linear.weight.t() if isinstance(linear, Conv1D) else linear.weight
        packed = library.rounded(own.float(), how, room) if how else pack(own, library.tiles, room)
        for name in names:
            _replace(model, name, PackedLinear(packed, model.get_submodule(name), library))
        tied = embeddings.get(weight)
        if tied is not None:
            _replace(model, tied, PackedEmbedding(packed, model.get_submodule(tied), library))  # type: ignore[arg-type]
        del linear, own
    if inputs in embeddings and inputs not in layers:
        embedding: Any = model.get_submodule(embeddings[inputs])
        packed = pack(embedding.weight, library.tiles, room)
        _replace(model, embeddings[inputs], PackedEmbedding(packed, embedding, library))
    _compute_in_float32(model)
    for name, module in list(model.named_modules()):
        if (norm := _usual_norm(module, library)) is not None:
            _replace(model, name, norm)
    if model.config._attn_implementation == attention_for(model.config) and _asks_for_attention_by_name(model):
        AttentionInterface.register(ATTENTION, attention_by(library))
        AttentionMaskInterface.register(ATTENTION, sdpa_mask)
        model.config._attn_implementation = ATTENTION


def _compute_in_float32(model: PreTrainedModel) -> None:
    """Convert what is not packed."""
    for parameter in model.parameters():
        parameter.data = parameter.data.float()
    model.config.get_text_config(decoder=True).dtype = model.config.dtype = torch.float32


def attention_by(library: Library) -> Callable[..., tuple[Tensor, None]]:
    """Return an attention function for transformers: it uses the kernel for a few slots of one sequence, else torch."""

    def attention(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
    ) -> tuple[Tensor, None]:
        unusual = options.get("dropout") or options.get("position_bias") is not None
        scaling, cap = options.get("scaling"), options.get("softcap")
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        if not unusual and attention_mask is not None and library.takes(query, key, value, attention_mask):
            return library.attention(query, key, value, attention_mask, scale, cap), None
        if cap is not None:
            return capped_attention(query, key, value, attention_mask, scale, cap), None
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)

    return attention


def _can_be_packed(module: nn.Module) -> bool:
    """Return whether a module is a linear layer with plain weights and without hooks."""
    if type(module) not in (nn.Linear, Conv1D) or hasattr(module, "_hf_hook") or module._forward_hooks:
        return False
    weight: Any = module.weight
    return type(weight.data) is Tensor and weight.dtype in FLOATS.values() and weight.numel() > 0


def _asks_for_attention_by_name(model: PreTrainedModel) -> bool:
    """Return whether a model uses any attention by its registered name.

    Some also test for the name "sdpa" (those with sparse attention, to mask what they have not selected): with another
    name they would compute something else.
    """
    source = inspect.getsource(sys.modules[type(model).__module__])
    return bool(model._supports_attention_backend) and '"sdpa"' not in source


def _is_embedding(module: nn.Module) -> bool:
    """Return whether a module is an embedding whose result is its weights, or these times a scale."""
    plain = type(module) is nn.Embedding or type(module).__name__.endswith("ScaledWordEmbedding")
    return plain and isinstance(module, nn.Embedding) and module.max_norm is None


def _usual_norm(module: nn.Module, library: Library) -> RMSNorm | None:
    """Return the same norm, computed by the kernel, if a module is a usual RMSNorm.

    Models have their own classes, so the result is compared. Those whose epsilon is named as in Gemma multiply with
    1 + weight.
    """
    if not type(module).__name__.endswith("RMSNorm") or module._forward_hooks:
        return None
    weight: Any = getattr(module, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 1 or weight.dtype != torch.float32:
        return None
    epsilon: Any = getattr(module, "variance_epsilon", None)
    factors = weight.detach()
    if epsilon is None:
        epsilon, factors = getattr(module, "eps", None), 1.0 + factors
    if not isinstance(epsilon, float):
        return None
    ours = RMSNorm(factors, epsilon, library)
    x = torch.randn(2, 3, len(weight), generator=torch.Generator().manual_seed(0))
    try:
        return ours if torch.allclose(module(x), ours(x), atol=1e-5, rtol=1e-5) else None
    except (RuntimeError, TypeError, ValueError):  # its forward takes other arguments
        return None


def _replace(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, module.eval())
