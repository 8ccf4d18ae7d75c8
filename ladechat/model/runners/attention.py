"""Ways to compute the attention of a pass over a fixed number of places, and which of them is the fastest here.

Query heads that share a key head are stacked as the R = T · (heads / key heads) rows of one matrix: nothing has to
copy keys and values.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

AGREEMENT = {torch.float64: 1e-6, torch.float32: 1e-3}
"""The largest difference allowed between two ways, for values of about 1; `COARSE` in 16 bits."""
COARSE = 3e-2

LAYERS = 8
"""Layers that are read in turn when ways are timed: keys and values of one would stay in a GPU's cache."""

Clock = Callable[[Callable[[], object]], float]
"""Runs a function and returns the seconds that it takes."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bias:
    """What is added to the scores of the R rows of a pass: 0, or -inf for places that they do not see.

    Attributes:
        cached: (1,) int64, the number L of cached places, all of which every row sees.
        places: (R, C), all places.
        slots: (R, T), the slots alone.
    """

    cached: Tensor
    places: Tensor
    slots: Tensor


@dataclass(frozen=True)
class AttentionInputs:
    """One layer's attention, over C places, of which L are cached and the next T are those of the slots.

    Attributes:
        queries: (key heads, R, head_dim).
        keys, values: (C, key heads, head_dim), of all places.
        own_keys, own_values: (T, key heads, head_dim), those of the slots alone.
        bias: which places each row sees.
        scale: factor of the scores.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    own_keys: Tensor
    own_values: Tensor
    bias: Bias
    scale: float


def in_one(inputs: AttentionInputs) -> Tensor:
    """The (key heads, R, head_dim) attention by torch's own function, over all places at once."""
    seen: Tensor = functional.scaled_dot_product_attention(
        inputs.queries[None],
        inputs.keys.transpose(0, 1)[None],
        inputs.values.transpose(0, 1)[None],
        attn_mask=inputs.bias.places[None, None],
        scale=inputs.scale,
    )
    return seen[0]


def in_steps(inputs: AttentionInputs) -> Tensor:
    """The same by matrix products: each uses a whole GPU, however few rows there are."""
    scores = torch.matmul(inputs.queries, inputs.keys.permute(1, 2, 0)) * inputs.scale + inputs.bias.places
    weights = torch.softmax(scores, -1, dtype=_exact(scores.dtype)).to(scores.dtype)
    return torch.matmul(weights, inputs.values.transpose(0, 1))


def in_two(inputs: AttentionInputs) -> Tensor:
    """The same, merged from two: over the cached places only, without a mask, and over the slots with one."""
    old = _flash(inputs) if inputs.queries.is_cuda else _unmasked(inputs)
    scores = torch.matmul(inputs.queries, inputs.own_keys.permute(1, 2, 0)) * inputs.scale + inputs.bias.slots
    return merged(*old, *_mean(scores, inputs.own_values)).to(scores.dtype)


def merged(one: Tensor, one_sum: Tensor, other: Tensor, other_sum: Tensor) -> Tensor:
    """Attention over two sets of keys, from that over each of them.

    Args:
        one: (…, head_dim), the weighted mean of the values of one set.
        one_sum: (…), the logarithm of the sum of its weights before they were made to add up to 1.
        other: the same of the other set.
        other_sum: the same of the other set.

    Returns:
        (…, head_dim), in the type of the logarithms.
    """
    share = torch.sigmoid(one_sum - other_sum)[..., None]
    return torch.lerp(other.to(share.dtype), one.to(share.dtype), share)


WAYS: dict[str, Callable[[AttentionInputs], Tensor]] = {"in one": in_one, "in steps": in_steps, "in two": in_two}
"""By name; the others must agree with the first."""


def fastest(
    heads: int,
    rows: int,
    slots: int,
    context: int,
    head_dim: int,
    dtype: torch.dtype,
    device: torch.device,
    clock: Clock,
) -> str:
    """The name of the fastest way, of those that can run here and agree with the first one."""
    dice = torch.Generator(device).manual_seed(0)

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, generator=dice, device=device, dtype=dtype)

    cached = context - slots
    queries, seen = some(heads, rows, head_dim), torch.zeros(rows, context, dtype=dtype, device=device)
    bias = Bias(torch.tensor([cached], device=device), seen, seen[:, cached:])
    layers = [(some(context, heads, head_dim), some(context, heads, head_dim)) for _ in range(LAYERS)]

    inputs = [
        AttentionInputs(queries, keys, values, keys[cached:], values[cached:], bias, head_dim**-0.5)
        for keys, values in layers
    ]
    expected, allowed = in_one(inputs[0]), AGREEMENT.get(dtype, COARSE)
    seconds: dict[str, float] = {}
    for name, way in WAYS.items():
        try:
            if bool((way(inputs[0]) - expected).abs().max() <= allowed):
                seconds[name] = clock(partial(_each, way, inputs))
        except RuntimeError as error:  # not for this type, this size or this card
            logger.info("Attention %s does not run for %s slots: %s", name, slots, error)
    return min(seconds, key=seconds.__getitem__, default="in one")


def _each(way: Callable[[AttentionInputs], Tensor], inputs: Sequence[AttentionInputs]) -> None:
    for one in inputs:
        way(one)


def _flash(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    """Over the cached places, see `merged`. Only the GPU knows how many these are, so they go in as a "packed" text."""
    heads, rows, _ = inputs.queries.shape
    none = torch.zeros_like(inputs.bias.cached)
    old_ends = torch.cat([none, inputs.bias.cached]).int()
    row_ends = torch.cat([none, none + rows]).int()
    output, sums, *_ = torch.ops.aten._flash_attention_forward(
        inputs.queries.transpose(0, 1).contiguous(),
        inputs.keys,
        inputs.values,
        row_ends,
        old_ends,
        rows,
        inputs.keys.shape[0],
        0.0,
        False,
        False,
        scale=inputs.scale,
    )
    return output.transpose(0, 1), sums.reshape(heads, rows)


def _unmasked(inputs: AttentionInputs) -> tuple[Tensor, Tensor]:
    """The same by matrix products."""
    new = torch.arange(inputs.keys.shape[0], device=inputs.keys.device) >= inputs.bias.cached
    scores = torch.matmul(inputs.queries, inputs.keys.permute(1, 2, 0)) * inputs.scale
    return _mean(scores.masked_fill(new, -torch.inf), inputs.values)


def _mean(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The weighted mean of values (keys, heads, head_dim) and the logarithm of the sum of its weights."""
    exact = scores.to(_exact(scores.dtype))
    return torch.matmul(torch.softmax(exact, -1).to(scores.dtype), values.transpose(0, 1)), exact.logsumexp(-1)


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
