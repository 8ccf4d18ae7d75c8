"""Plain weights, quantised by torchao while they are read: what is asked for, what that needs, how large it becomes."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.utils.import_utils import is_accelerate_available

from ladechat.model.checkpoint import LoadError

GROUP = 128
"""Weights that share a scale and a zero point as int4. As int8, a row of a matrix shares a scale."""

SCALE_BYTES = 4

M_MMAP_THRESHOLD = -3
"""glibc's name for the size from which on a block of memory goes back to the system when it is freed."""
WHILE_READING = 1 << 20
AFTERWARDS = 32 << 20
"""What glibc raises it to by itself as large blocks are freed: passes then use the same memory again and again."""


@contextmanager
def freed_at_once() -> Iterator[None]:
    """Have what a matrix took before it was quantised go back to the system.

    glibc would keep it in its heaps: measured on a model of 205 million parameters in float32, 936 MB of memory after
    loading, which are 214 MB with this. Elsewhere nothing is changed.
    """
    libc: Any = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(M_MMAP_THRESHOLD, WHILE_READING)
    try:
        yield
    finally:
        libc.mallopt(M_MMAP_THRESHOLD, AFTERWARDS)


def check_weight_only(quantize: str, name: str, method: str | None, device: torch.device, dtype: torch.dtype) -> None:
    """Refuse what torchao cannot do, before a weight is read.

    Args:
        quantize: "int8" or "int4".
        name: what the model is called in messages.
        method: how its weights are quantised already, if they are.
        device: where it shall run.
        dtype: what its activations are computed in.

    Raises:
        LoadError: it is quantised already, there is no such kernel for this device or type, or a package is missing.
    """
    if method is not None:
        message = f"{name} is quantised already, with {method}, and cannot be quantised to {quantize}."
        raise LoadError("load_failed", message, "Leave --quantize away, or give the model that it was made from.")
    if quantize == "int4" and device.type != "cuda":
        message = f"Weights of 4 bits need a CUDA GPU: torchao has no int4 kernel for {device}."
        raise LoadError("load_failed", message, "Use --quantize int8.")
    if quantize == "int4" and dtype != torch.bfloat16:
        message = f"torchao computes with weights of 4 bits in bfloat16, not in {str(dtype).removeprefix('torch.')}."
        raise LoadError("load_failed", message, "Give --dtype bfloat16, or use --quantize int8.")
    if quantize == "int4" and not is_accelerate_available():
        message = "Weights of 4 bits are packed on the GPU while they are read, which needs the package accelerate."
        raise LoadError("missing_package", message, "Install it beside ladechat (pip install accelerate).")


def weight_only_config(quantize: str) -> Any:
    """What transformers takes for quantising a model's linear layers while it reads them; the output layer is left."""
    # Not before it is wanted: importing torchao takes its time, and it need not be installed.
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig
    from transformers import TorchAoConfig

    if quantize == "int8":
        return TorchAoConfig(Int8WeightOnlyConfig())
    return TorchAoConfig(Int4WeightOnlyConfig(group_size=GROUP, int4_packing_format="tile_packed_to_4d"))


def weight_only_bytes(config: Any, dtype: torch.dtype, quantize: str) -> int:
    """What the weights of a configuration take in memory quantised so, and one matrix of them unpacked.

    A kernel for weights of 8 bits unpacks a matrix for the time of its product.
    """
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    kept = sum(parameter.numel() for parameter in model.parameters()) * dtype.itemsize
    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    output = model.get_output_embeddings()
    matrices = [weight for weight in matrices if output is None or weight is not output.weight]
    saved = sum(weight.numel() * dtype.itemsize - _packed_bytes(weight, quantize) for weight in matrices)
    return int(kept - saved + max((weight.numel() for weight in matrices), default=0) * dtype.itemsize)


def _packed_bytes(weight: torch.Tensor, quantize: str) -> int:
    rows, columns = weight.shape
    if quantize == "int8":
        return rows * (columns + SCALE_BYTES)
    return rows * (columns // 2 + -(-columns // GROUP) * SCALE_BYTES)
