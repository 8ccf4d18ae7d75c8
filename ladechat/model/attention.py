"""Ways to compute the attention of a pass over a fixed number of places, and which of them is the fastest here.

Query heads that share a key head are further rows of one matrix, R = T · (heads / key heads) of them: so no way has to
copy keys and values for them.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

AGREEMENT = {torch.float64: 1e-6, torch.float32: 1e-3}
"""How far a way may be off the first one, of values of about 1; `COARSE` in the short types."""
COARSE = 3e-2

LAYERS = 8
"""So many keys and values are read in turn when ways are timed: those of one layer would stay in a GPU's cache."""

Clock = Callable[[Callable[[], object]], float]
"""Runs something and says how long it takes, in seconds."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sight:
    """What the R rows of a pass see, to be added to their scores: 0, or -inf for what they do not see.

    Attributes:
        cached: (1,) int64, the number L of cached places, all of which every row sees.
        places: (R, C), all places.
        slots: (R, T), the slots alone.
    """

    cached: Tensor
    places: Tensor
    slots: Tensor


@dataclass(frozen=True)
class Asked:
    """One layer's attention, over C places, of which L are cached and the next T are those of the slots.

    Attributes:
        queries: (key heads, R, head_dim).
        keys, values: (C, key heads, head_dim), of all places.
        own_keys, own_values: (T, key heads, head_dim), those of the slots once more.
        sight: who sees what.
        scale: what the scores are multiplied with.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    own_keys: Tensor
    own_values: Tensor
    sight: Sight
    scale: float


def in_one(asked: Asked) -> Tensor:
    """The (key heads, R, head_dim) attention by torch's own, all places at once."""
    seen: Tensor = functional.scaled_dot_product_attention(
        asked.queries[None],
        asked.keys.transpose(0, 1)[None],
        asked.values.transpose(0, 1)[None],
        attn_mask=asked.sight.places[None, None],
        scale=asked.scale,
    )
    return seen[0]


def in_steps(asked: Asked) -> Tensor:
    """The same by products of matrices: each spreads over a whole GPU, however few rows there are."""
    scores = torch.matmul(asked.queries, asked.keys.permute(1, 2, 0)) * asked.scale + asked.sight.places
    weights = torch.softmax(scores, -1, dtype=_exact(scores.dtype)).to(scores.dtype)
    return torch.matmul(weights, asked.values.transpose(0, 1))


def in_two(asked: Asked) -> Tensor:
    """The same, merged from two: what is cached, of which no more is read than there is, and the slots with a mask."""
    old = _flash(asked) if asked.queries.is_cuda else _unmasked(asked)
    scores = torch.matmul(asked.queries, asked.own_keys.permute(1, 2, 0)) * asked.scale + asked.sight.slots
    return merged(*old, *_mean(scores, asked.own_values)).to(scores.dtype)


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


WAYS: dict[str, Callable[[Asked], Tensor]] = {"in one": in_one, "in steps": in_steps, "in two": in_two}
"""By name; what the others compute is measured by the first."""


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
    """The name of the way that takes the least time, of those that can run here and agree with the first one."""
    dice = torch.Generator(device).manual_seed(0)

    def some(*shape: int) -> Tensor:
        return torch.randn(shape, generator=dice, device=device, dtype=dtype)

    cached = context - slots
    queries, seen = some(heads, rows, head_dim), torch.zeros(rows, context, dtype=dtype, device=device)
    sight = Sight(torch.tensor([cached], device=device), seen, seen[:, cached:])
    layers = [(some(context, heads, head_dim), some(context, heads, head_dim)) for _ in range(LAYERS)]

    asked = [
        Asked(queries, keys, values, keys[cached:], values[cached:], sight, head_dim**-0.5) for keys, values in layers
    ]
    expected, allowed = in_one(asked[0]), AGREEMENT.get(dtype, COARSE)
    seconds: dict[str, float] = {}
    for name, way in WAYS.items():
        try:
            if bool((way(asked[0]) - expected).abs().max() <= allowed):
                seconds[name] = clock(partial(_each, way, asked))
        except RuntimeError as error:  # not for this type, this size or this card
            logger.info("Attention %s cannot be had for %s slots: %s", name, slots, error)
    return min(seconds, key=seconds.__getitem__, default="in one")


def _each(way: Callable[[Asked], Tensor], asked: Sequence[Asked]) -> None:
    for one in asked:
        way(one)


def _flash(asked: Asked) -> tuple[Tensor, Tensor]:
    """Over the cached places, see `merged`; the GPU alone knows how many there are: a text of any length, "packed"."""
    heads, rows, _ = asked.queries.shape
    none = torch.zeros_like(asked.sight.cached)
    old_ends = torch.cat([none, asked.sight.cached]).int()
    row_ends = torch.cat([none, none + rows]).int()
    output, sums, *_ = torch.ops.aten._flash_attention_forward(
        asked.queries.transpose(0, 1).contiguous(),
        asked.keys,
        asked.values,
        row_ends,
        old_ends,
        rows,
        asked.keys.shape[0],
        0.0,
        False,
        False,
        scale=asked.scale,
    )
    return output.transpose(0, 1), sums.reshape(heads, rows)


def _unmasked(asked: Asked) -> tuple[Tensor, Tensor]:
    """The same by products of matrices."""
    new = torch.arange(asked.keys.shape[0], device=asked.keys.device) >= asked.sight.cached
    scores = torch.matmul(asked.queries, asked.keys.permute(1, 2, 0)) * asked.scale
    return _mean(scores.masked_fill(new, -torch.inf), asked.values)


def _mean(scores: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The weighted mean of values (keys, heads, head_dim) and the logarithm of the sum of its weights."""
    exact = scores.to(_exact(scores.dtype))
    return torch.matmul(torch.softmax(exact, -1).to(scores.dtype), values.transpose(0, 1)), exact.logsumexp(-1)


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
