"""Triton kernels of a forward pass.

For one sequence a pass is bound by reading the weights; the rest are many small operations, each with its launch
overhead. So all work between two matrix products is one kernel. On Hopper GPUs products of few rows are our own kernel
too, and each kernel is launched while the one before ends. All sums are in float32. Under ``TRITON_INTERPRET=1`` the
kernels run on a CPU, which is how they are tested.
"""

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

NEVER = tl.constexpr(-1.0e30)
"""The score of a masked place. Finite, since the difference of two infinities is NaN."""
LOG2_E = 1.4426950408889634

PLACES = 64
"""KV cache places per block of attention."""

FEW_ROWS = 64
"""The most rows of our own product: with more, torch's is as fast."""

COLUMNS, INNER = 64, 128
"""Block sizes of a product: columns per program, and inner elements per iteration."""

MOST_PARTS = 4
"""The most parts into which the inner dimension of a product is split."""

CHUNK = 4096
"""Logits per program in the argmax."""


@functools.cache
def _is_hopper(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 9


def has_own_product(x: Tensor) -> bool:
    """Return whether products of these rows use our own kernel: where it was measured to be faster."""
    return len(x) <= FEW_ROWS and x.dtype is not torch.float32 and _is_hopper(x.device)


def _start(x: Tensor) -> dict[str, Any]:
    """Return launch options for the rows of `x`: where all kernels are ours, each starts while the last one ends."""
    return {"EARLY": True, "launch_pdl": True} if len(x) <= FEW_ROWS and _is_hopper(x.device) else {"EARLY": False}


@triton.jit
def _wait(EARLY: tl.constexpr):
    """Let the next kernel start, and wait for the output of the one before (programmatic dependent launch)."""
    if EARLY:
        gdc_launch_dependents()
        gdc_wait()


@triton.jit
def _product(
    x, weight, bias, out, rows, columns, inner,
    BIASED: tl.constexpr, EVEN: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    INNER: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Compute some columns of all rows, summed over one part of the inner dimension. The weights are the first factor:
    tensor cores take 64 rows of that, and any small number of columns of the second.
    """
    column, part = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), tl.program_id(1)
    row, at = tl.arange(0, ROWS), tl.arange(0, INNER)
    size = tl.cdiv(tl.cdiv(inner, PARTS), INNER) * INNER
    begin = part * size
    end = tl.minimum(begin + size, inner)
    weights = weight + column[:, None].to(tl.int64) * inner + at[None, :]
    vectors = x + row[:, None] * inner + at[None, :]
    total = tl.zeros((COLUMNS, ROWS), tl.float32)
    _wait(EARLY)
    for k in range(begin, end, INNER):
        if EVEN:
            w = tl.load(weights + k)
            v = tl.load(vectors + k, mask=(row < rows)[:, None], other=0.0)
        else:
            inside = (k + at < end)[None, :]
            w = tl.load(weights + k, mask=(column < columns)[:, None] & inside, other=0.0)
            v = tl.load(vectors + k, mask=(row < rows)[:, None] & inside, other=0.0)
        total = tl.dot(w, tl.trans(v), total, input_precision="ieee")
    if BIASED:
        total += tl.load(bias + column, mask=column < columns, other=0.0).to(tl.float32)[:, None]
    target = out + (part * rows + row[None, :]) * columns + column[:, None]
    tl.store(target, total.to(out.dtype.element_ty), mask=(row < rows)[None, :] & (column < columns)[:, None])


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None, parts: int = 1) -> Tensor:
    """Return the products of (T, inner) rows, at most `FEW_ROWS`, with each row of a (columns, inner) weight.

    Args:
        x: the rows.
        weight: the weight, as of a linear layer.
        bias: (columns,), or None; only with one part.
        parts: the number of parts of the inner dimension, so that the whole GPU has work in spite of few columns
            (split-K).

    Returns:
        (T, columns), or with several parts (parts, T, columns) float32, to be summed over the parts.
    """
    (rows, inner), columns = x.shape, len(weight)
    out = x.new_empty((rows, columns)) if parts == 1 else x.new_empty((parts, rows, columns), dtype=torch.float32)
    _product[(triton.cdiv(columns, COLUMNS), parts)](
        x, weight, bias, out, rows, columns, inner,
        BIASED=bias is not None, EVEN=columns % COLUMNS == 0 and inner % (parts * INNER) == 0, PARTS=parts,
        ROWS=max(16, triton.next_power_of_2(rows)), COLUMNS=COLUMNS, INNER=INNER,
        num_warps=4, num_stages=6 if rows <= 16 else 5, **_start(x),
    )  # fmt: skip
    return out


def parts_of_product(columns: int, cores: int) -> int:
    """Return into how many parts to split a product on a GPU with so many multiprocessors: 1, 2 or 4."""
    parts = 1
    while parts < MOST_PARTS and 2 * parts * triton.cdiv(columns, COLUMNS) <= cores:
        parts *= 2
    return parts


@triton.jit
def _best_of_chunk(logits, tops, tokens, totals, vocabulary, chunks, CHUNK: tl.constexpr, EARLY: tl.constexpr):
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    token = chunk * CHUNK + tl.arange(0, CHUNK)
    _wait(EARLY)
    values = tl.load(logits + row * vocabulary + token, mask=token < vocabulary, other=float("-inf")).to(tl.float32)
    top, index = tl.max(values, 0, return_indices=True)
    tl.store(tops + row * chunks + chunk, top)
    tl.store(tokens + row * chunks + chunk, chunk * CHUNK + index)
    tl.store(totals + row * chunks + chunk, tl.sum(tl.exp(values - top), 0))


@triton.jit
def _best(tops, tokens, totals, out, rows, chunks, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    row, chunk = tl.program_id(0), tl.arange(0, BLOCK)
    inside = chunk < chunks
    _wait(EARLY)
    top = tl.load(tops + row * chunks + chunk, mask=inside, other=float("-inf"))
    highest, index = tl.max(top, 0, return_indices=True)
    total = tl.sum(tl.load(totals + row * chunks + chunk, mask=inside, other=0.0) * tl.exp(top - highest), 0)
    tl.store(out + row, tl.load(tokens + row * chunks + index).to(tl.float32))
    tl.store(out + rows + row, -tl.log(total))


def best(logits: Tensor) -> Tensor:
    """Return the same as `ladechat.model.runners.argmax.best`, reading the logits only once."""
    rows, vocabulary = logits.shape
    chunks = triton.cdiv(vocabulary, CHUNK)
    tops, totals = logits.new_empty((2, rows, chunks), dtype=torch.float32)
    tokens = logits.new_empty((rows, chunks), dtype=torch.int32)
    out = logits.new_empty((2, rows), dtype=torch.float32)
    _best_of_chunk[(rows, chunks)](
        logits, tops, tokens, totals, vocabulary, chunks, CHUNK=CHUNK, num_warps=8, **_start(logits)
    )
    _best[(rows,)](
        tops, tokens, totals, out, rows, chunks,
        BLOCK=triton.next_power_of_2(chunks), num_warps=1, **_start(logits),
    )  # fmt: skip
    return out


@triton.jit
def _add_and_norm(x, more, weight, out, rows, width, eps, PARTS: tl.constexpr, BLOCK: tl.constexpr,
                  EARLY: tl.constexpr):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * width
    inner = tl.arange(0, BLOCK)
    inside = inner < width
    _wait(EARLY)
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
        num_warps=8, **_start(x),
    )  # fmt: skip


@triton.jit
def _silu_times(both, out, width, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    _wait(EARLY)
    row = tl.program_id(0).to(tl.int64)
    inner = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = inner < width
    gate = tl.load(both + row * 2 * width + inner, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(both + row * 2 * width + width + inner, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * width + inner, (gate / (1.0 + tl.exp(-gate)) * up).to(out.dtype.element_ty), mask=inside)


def silu_times(both: Tensor, out: Tensor) -> None:
    """Write SiLU of the first half of each row times the second: (T, 2 · width) to (T, width)."""
    width = out.shape[1]
    _silu_times[(out.shape[0], triton.cdiv(width, 1024))](both, out, width, BLOCK=1024, **_start(out))


@triton.jit
def _normed(first, second, norm, inner, inside, width, eps):
    """Return both halves of a head's vector after its RMSNorm."""
    scale = 1.0 / tl.sqrt((tl.sum(first * first, 0) + tl.sum(second * second, 0)) / width + eps)
    first *= scale * tl.load(norm + inner, mask=inside, other=0.0).to(tl.float32)
    second *= scale * tl.load(norm + width // 2 + inner, mask=inside, other=0.0).to(tl.float32)
    return first, second


@triton.jit
def _rotate_and_store(
    qkv, frequencies, positions, cached, q_norm, k_norm, query, keys, values, scaling, eps,
    QUERIES: tl.constexpr, KV_HEADS: tl.constexpr, WIDTH: tl.constexpr, NORMED: tl.constexpr, BLOCK: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """Rotate one head's vector of one slot if it is a query or a key, and store it in its place."""
    _wait(EARLY)
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
    tl.store(target + inner, first.to(query.dtype.element_ty), mask=inside)
    tl.store(target + half + inner, second.to(query.dtype.element_ty), mask=inside)


def rotate_and_store(
    qkv: Tensor,
    frequencies: Tensor,
    positions: Tensor,
    cached: Tensor,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    scaling: float,
    norms: tuple[Tensor, Tensor] | None,
    eps: float,
) -> None:
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
        BLOCK=triton.next_power_of_2(width // 2), num_warps=1, **_start(query),
    )  # fmt: skip


@triton.jit
def _attend(
    query, keys, values, sees, cached, sums, tops, totals, slots, scale,
    HEADS: tl.constexpr, GROUP: tl.constexpr, WIDTH: tl.constexpr, PARTS: tl.constexpr,
    ROWS: tl.constexpr, PLACES: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """Attend some rows of one group of heads to one part of the places: of the cache or, as the last, the slots."""
    _wait(EARLY)
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
    _wait(EARLY)
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
    rows = min(64, max(16, triton.next_power_of_2(slots * group)))
    sums = query.new_empty((parts + 1, slots, heads, width), dtype=torch.float32)
    tops = query.new_empty((2, parts + 1, slots, heads), dtype=torch.float32)
    block = triton.next_power_of_2(width)
    _attend[(kv_heads, triton.cdiv(slots * group, rows), parts + 1)](
        query, keys, values, sees, cached, sums, tops[0], tops[1], slots, scale * LOG2_E,
        HEADS=heads, GROUP=group, WIDTH=width, PARTS=parts, ROWS=rows, PLACES=PLACES, BLOCK=block,
        num_warps=4, num_stages=2, **_start(query),
    )  # fmt: skip
    _join[(slots * heads,)](
        sums, tops[0], tops[1], out, slots * heads,
        WIDTH=width, COUNT=parts + 1, MOST=triton.next_power_of_2(parts + 1), BLOCK=block, num_warps=1, **_start(query),
    )  # fmt: skip
