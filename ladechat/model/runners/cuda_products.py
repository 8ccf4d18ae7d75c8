"""Triton kernels of products and of the argmax, and how all kernels of a pass are launched.

For one sequence a pass is bound by reading the weights; the rest are many small operations, each with its launch
overhead. So all work between two matrix products is one kernel (`ladechat.model.runners.cuda_kernels`). On Hopper GPUs
products of few rows are our own kernel too, and each kernel is launched while the one before ends. All sums are in
float32. Under ``TRITON_INTERPRET=1`` the kernels run on a CPU, which is how they are tested.
"""

import functools
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

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


def start(x: Tensor) -> dict[str, Any]:
    """Return launch options for the rows of `x`: where all kernels are ours, each starts while the last one ends."""
    return {"EARLY": True, "launch_pdl": True} if len(x) <= FEW_ROWS and _is_hopper(x.device) else {"EARLY": False}


@triton.jit
def wait(EARLY: tl.constexpr):
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
    wait(EARLY)
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
        num_warps=4, num_stages=6 if rows <= 16 else 5, **start(x),
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
    wait(EARLY)
    values = tl.load(logits + row * vocabulary + token, mask=token < vocabulary, other=float("-inf")).to(tl.float32)
    top, index = tl.max(values, 0, return_indices=True)
    tl.store(tops + row * chunks + chunk, top)
    tl.store(tokens + row * chunks + chunk, chunk * CHUNK + index)
    tl.store(totals + row * chunks + chunk, tl.sum(tl.exp(values - top), 0))


@triton.jit
def _best(tops, tokens, totals, out, rows, chunks, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    row, chunk = tl.program_id(0), tl.arange(0, BLOCK)
    inside = chunk < chunks
    wait(EARLY)
    top = tl.load(tops + row * chunks + chunk, mask=inside, other=float("-inf"))
    highest, index = tl.max(top, 0, return_indices=True)
    total = tl.sum(tl.load(totals + row * chunks + chunk, mask=inside, other=0.0) * tl.exp(top - highest), 0)
    tl.store(out + row, tl.load(tokens + row * chunks + index).to(tl.float32))
    tl.store(out + rows + row, -tl.log(total))


def best(logits: Tensor) -> Tensor:
    """Return the same as `ladechat.model.runners.logits.best`, reading the logits only once."""
    rows, vocabulary = logits.shape
    chunks = triton.cdiv(vocabulary, CHUNK)
    tops, totals = logits.new_empty((2, rows, chunks), dtype=torch.float32)
    tokens = logits.new_empty((rows, chunks), dtype=torch.int32)
    out = logits.new_empty((2, rows), dtype=torch.float32)
    _best_of_chunk[(rows, chunks)](
        logits, tops, tokens, totals, vocabulary, chunks, CHUNK=CHUNK, num_warps=8, **start(logits)
    )
    _best[(rows,)](
        tops, tokens, totals, out, rows, chunks,
        BLOCK=triton.next_power_of_2(chunks), num_warps=1, **start(logits),
    )  # fmt: skip
    return out
