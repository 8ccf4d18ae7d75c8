"""Triton kernels of all work between two products of a pass: norms, activation, rotary embedding, attention."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ladechat.model.runners.cuda_products import start, wait

NEVER = tl.constexpr(-1.0e30)
"""The score of a masked place. Finite, since the difference of two infinities is NaN."""
LOG2_E = 1.4426950408889634

PLACES = 64
"""KV cache places per block of attention."""


@triton.jit
def _add_and_norm(x, more, weight, out, rows, width, eps, PARTS: tl.constexpr, BLOCK: tl.constexpr,
                  EARLY: tl.constexpr):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * width
    inner = tl.arange(0, BLOCK)
    inside = inner < width
    wait(EARLY)
    values = tl.load(x + row + inner, mask=inside, other=0.0).to(tl.float32)
    if PARTS > 0:
        for part in tl.static_range(PARTS):
            added = more + part * rows * width + row
            values += tl.load(added + inner, mask=inside, other=0.0).to(tl.float32)
        tl.store(x + row + inner, values.to(x.dtype.element_ty), mask=inside)
        values = values.to(x.dtype.element_ty).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 0) / width + eps)
    normed = (values * scale).to(out.dtype.element_ty).to(tl.float32)
    normed *= tl.load(weight + inner, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row + inner, normed.to(out.dtype.element_ty), mask=inside)


def add_and_norm(x: Tensor, more: Tensor | None, weight: Tensor, eps: float, out: Tensor) -> None:
    """Add `more` to `x`, (T, width), in place, and write the RMSNorm of the sum to `out`.

    Args:
        x: hidden states.
        more: (T, width), or (parts, T, width), all of which are added, or None.
        weight: (width,), of the norm.
        eps: of the norm.
        out: (T, width), written.
    """
    rows, width = x.shape
    _add_and_norm[(rows,)](
        x, more, weight, out, rows, width, eps,
        PARTS=0 if more is None else more.numel() // x.numel(), BLOCK=triton.next_power_of_2(width),
        num_warps=8, **start(x),
    )  # fmt: skip


@triton.jit
def _silu_times(both, out, width, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    wait(EARLY)
    row = tl.program_id(0).to(tl.int64)
    inner = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = inner < width
    gate = tl.load(both + row * 2 * width + inner, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(both + row * 2 * width + width + inner, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + inner, (gate / (1.0 + tl.exp(-gate)) * up).to(out.dtype.element_ty), mask=inside)


def silu_times(both: Tensor, out: Tensor) -> None:
    """Write SiLU of the first half of each row times the second: (T, 2 · width) to (T, width)."""
    width = out.shape[1]
    _silu_times[(out.shape[0], triton.cdiv(width, 1024))](both, out, width, BLOCK=1024, **start(out))


@triton.jit
def _normed(first, second, norm, inner, inside, width, eps):
    """Return both halves of a head's vector after its RMSNorm."""
    scale = 1.0 / tl.sqrt((tl.sum(first * first, 0) + tl.sum(second * second, 0)) / width + eps)
    first *= scale * tl.load(norm + inner, mask=inside, other=0.0).to(tl.float32)
    second *= scale * tl.load(norm + width // 2 + inner, mask=inside, other=0.0).to(tl.float32)
    return first, second


@triton.jit
def _finite(values):
    return tl.where(tl.abs(values) < float("inf"), values, 0.0)


@triton.jit
def _rotate_and_store(
    qkv, frequencies, positions, cached, q_norm, k_norm, query, keys, values, scaling, eps,
    QUERIES: tl.constexpr, KV_HEADS: tl.constexpr, WIDTH: tl.constexpr, NORMED: tl.constexpr, BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """Rotate one head's vector of one slot if it is a query or a key, and store it in its place."""
    wait(EARLY)
    slot, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    half = WIDTH // 2
    inner = tl.arange(0, BLOCK)
    inside = inner < half
    source = qkv + (slot * (QUERIES + 2 * KV_HEADS) + head) * WIDTH
    first = tl.load(source + inner, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(source + half + inner, mask=inside, other=0.0).to(tl.float32)
    place = tl.load(cached) + slot
    if head < QUERIES + KV_HEADS:
        if NORMED:
            if head < QUERIES:
                first, second = _normed(first, second, q_norm, inner, inside, WIDTH, eps)
            else:
                first, second = _normed(first, second, k_norm, inner, inside, WIDTH, eps)
        position = tl.load(positions + slot).to(tl.float32)
        angle = position * tl.load(frequencies + inner, mask=inside, other=0.0)
        cosine, sine = tl.cos(angle) * scaling, tl.sin(angle) * scaling
        first, second = first * cosine - second * sine, second * cosine + first * sine
    if head < QUERIES:
        target = query + (slot * QUERIES + head) * WIDTH
    elif head < QUERIES + KV_HEADS:
        target = keys + (place * KV_HEADS + head - QUERIES) * WIDTH
    else:
        target = values + (place * KV_HEADS + head - QUERIES - KV_HEADS) * WIDTH
        # A pseudo row that overflows: who does not see it weighs it with 0, but 0 · NaN is NaN.
        first, second = _finite(first), _finite(second)
    tl.store(target + inner, first.to(query.dtype.element_ty), mask=inside)
    tl.store(target + half + inner, second.to(query.dtype.element_ty), mask=inside)


def rotate_and_store(qkv: Tensor, frequencies: Tensor, positions: Tensor, cached: Tensor, query: Tensor, keys: Tensor,
                     values: Tensor, scaling: float, norms: tuple[Tensor, Tensor] | None,
                     eps: float) -> None:  # fmt: skip
    """Rotate queries and keys by their positions (RoPE), and store keys and values after the cached ones.

    Args:
        qkv: (T, (heads + 2 · kv_heads) · head_dim) queries, keys, values of each slot.
        frequencies: (head_dim / 2,) float32.
        positions: (T,) int64.
        cached: (1,) int64, the number of cached tokens.
        query: (T, heads, head_dim), written.
        keys: (places, kv_heads, head_dim), written at the slots' places.
        values: as `keys`.
        scaling: the factor of cosines and sines.
        norms: (head_dim,) each, the weights of the RMSNorms of queries and keys; None where there are none.
        eps: of these norms.
    """
    slots, heads, width = query.shape
    kv_heads = keys.shape[1]
    q_norm, k_norm = norms or (None, None)
    _rotate_and_store[(slots, heads + 2 * kv_heads)](
        qkv, frequencies, positions, cached, q_norm, k_norm, query, keys, values, scaling, eps,
        QUERIES=heads, KV_HEADS=kv_heads, WIDTH=width, NORMED=norms is not None,
        BLOCK=triton.next_power_of_2(width // 2), num_warps=1, **start(query),
    )  # fmt: skip


@triton.jit
def _attend(
    query, keys, values, sees, cached, sums, tops, totals, slots, scale,
    HEADS: tl.constexpr, GROUP: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr,
    ROWS: tl.constexpr, PLACES: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Attend some rows of one group of heads to one part of the places: of the cache or, as the last, the slots."""
    wait(EARLY)
    kv_head, part = tl.program_id(0), tl.program_id(2)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    slot, head = row // GROUP, kv_head * GROUP + row % GROUP
    inner = tl.arange(0, BLOCK)
    real = slot < slots
    vector = (slot * HEADS + head)[:, None] * WIDTH + inner[None, :]
    inside = real[:, None] & (inner < WIDTH)[None, :]
    q = tl.load(query + vector, mask=inside, other=0.0)
    length = tl.load(cached).to(tl.int32)
    size = tl.cdiv(tl.cdiv(length, PARTS), PLACES) * PLACES
    begin, end = part * size, tl.minimum(part * size + size, length)
    if part == PARTS:
        begin, end = length, length + slots
    top = tl.full((ROWS,), NEVER, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    weighed = tl.zeros((ROWS, BLOCK), tl.float32)
    for at in range(begin, end, PLACES):
        place = at + tl.arange(0, PLACES)
        stored = (place[:, None].to(tl.int64) * (HEADS // GROUP) + kv_head) * WIDTH + inner[None, :]
        there = (place < end)[:, None] & (inner < WIDTH)[None, :]
        k = tl.load(keys + stored, mask=there, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = (place < end)[None, :] & real[:, None]
        if part == PARTS:
            other = place - length
            seen = seen & (tl.load(sees + slot[:, None] * slots + other[None, :], mask=seen, other=0) != 0)
        scores = tl.where(seen, scores, NEVER)
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.where(seen, tl.exp2(scores - higher[:, None]), 0.0)
        before = tl.exp2(top - higher)
        total = total * before + tl.sum(weights, 1)
        v = tl.load(values + stored, mask=there, other=0.0)
        weighed = weighed * before[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        top = higher
    tl.store(sums + part * slots * HEADS * WIDTH + vector, weighed, mask=inside)
    tl.store(tops + part * slots * HEADS + slot * HEADS + head, top, mask=real)
    tl.store(totals + part * slots * HEADS + slot * HEADS + head, total, mask=real)


@triton.jit
def _join(sums, tops, totals, out, rows, WIDTH: tl.constexpr, COUNT: tl.constexpr, MOST: tl.constexpr,
          BLOCK: tl.constexpr, EARLY: tl.constexpr):  # fmt: skip
    """Join the parts of one row's attention by their log-sum-exps."""
    wait(EARLY)
    row = tl.program_id(0)
    inner = tl.arange(0, BLOCK)
    part = tl.arange(0, MOST)
    top = tl.load(tops + part * rows + row, mask=part < COUNT, other=NEVER)
    factor = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(tl.load(totals + part * rows + row, mask=part < COUNT, other=0.0) * factor, 0)
    there = (part < COUNT)[:, None] & (inner < WIDTH)[None, :]
    weighed = tl.load(sums + (part * rows + row)[:, None] * WIDTH + inner[None, :], mask=there, other=0.0)
    result = tl.sum(weighed * factor[:, None], 0) / total
    tl.store(out + row * WIDTH + inner, result.to(out.dtype.element_ty), mask=inner < WIDTH)


def attend(query: Tensor, keys: Tensor, values: Tensor, sees: Tensor, cached: Tensor, scale: float, parts: int,
           out: Tensor) -> None:  # fmt: skip
    """Compute the attention of T slots over the cached tokens and over each other, into `out`.

    The cached tokens, which every slot sees, are processed in `parts` parallel parts, and the slots' own keys as one
    more, the only one with a mask. The parts are joined by their log-sum-exps (as in Flash-Decoding).

    Args:
        query: (T, heads, head_dim).
        keys: (places, kv_heads, head_dim); those of slot i are at place `cached` + i.
        values: as `keys`.
        sees: (T, T) bool; `sees[i, j]` says whether slot i sees slot j.
        cached: (1,) int64, the number of cached tokens.
        scale: the factor of the scores.
        parts: the number of parts of the cache.
        out: (T, heads · head_dim), written.
    """
    slots, heads, width = query.shape
    kv_heads = keys.shape[1]
    group = heads // kv_heads
    # In float32, 64 rows on 4 warps do not fit the registers; the spills took 0.55 ms a layer on an H200.
    most, warps = (32, 8) if query.dtype is torch.float32 else (64, 4)
    rows = min(most, max(16, triton.next_power_of_2(slots * group)))
    sums = query.new_empty((parts + 1, slots, heads, width), dtype=torch.float32)
    tops = query.new_empty((2, parts + 1, slots, heads), dtype=torch.float32)
    block = triton.next_power_of_2(width)
    _attend[(kv_heads, triton.cdiv(slots * group, rows), parts + 1)](
        query, keys, values, sees, cached, sums, tops[0], tops[1], slots, scale * LOG2_E,
        HEADS=heads, GROUP=group, WIDTH=width, PARTS=parts, ROWS=rows, PLACES=PLACES, BLOCK=block,
        num_warps=warps, num_stages=2, **start(query),
    )  # fmt: skip
    _join[(slots * heads,)](
        sums, tops[0], tops[1], out, slots * heads,
        WIDTH=width, COUNT=parts + 1, MOST=triton.next_power_of_2(parts + 1), BLOCK=block, num_warps=1, **start(query),
    )  # fmt: skip
