"""Quantisation of plain weights by torchao while they are read: its requirements, and the resulting size."""

from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.utils.import_utils import is_accelerate_available

from ladechat.installing import command_for
from ladechat.model.checkpoint.files import LoadError

GROUP = 128
"""int4 weights that share a scale and a zero point. As int8, a row of a matrix shares a scale."""

SCALE_BYTES = 4


def check_weight_only(quantize: str, name: str, method: str | None, device: torch.device, dtype: torch.dtype) -> None:
    """Refuse a quantisation that torchao cannot do, before any weight is read.

    Args:
        quantize: "int8" or "int4".
        name: the model's name in messages.
        method: the method by which its weights are quantised already; None if they are not.
        device: the device on which it will run.
        dtype: the type of its activations.

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
        raise LoadError("missing_package", message, f"Install it beside ladechat: {command_for('accelerate')}")


def weight_only_config(quantize: str) -> Any:
    """Return transformers' configuration for quantising linear layers, except the output layer, while they are read."""
    # Imported here: it is slow, and need not be installed.
    from torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig
    from transformers import TorchAoConfig

    if quantize == "int8":
        return TorchAoConfig(Int8WeightOnlyConfig())
    return TorchAoConfig(Int4WeightOnlyConfig(group_size=GROUP, int4_packing_format="tile_packed_to_4d"))


def weight_only_bytes(config: Any, dtype: torch.dtype, quantize: str) -> int:
    """Return the bytes of a model's quantised weights, plus those of one unpacked matrix.

    The kernel for 8-bit weights unpacks a matrix while it multiplies.
    """
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    unquantised = sum(parameter.numel() for parameter in model.parameters()) * dtype.itemsize
    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    output = model.get_output_embeddings()
    matrices = [weight for weight in matrices if output is None or weight is not output.weight]
    saved = sum(weight.numel() * dtype.itemsize - _packed_bytes(weight, quantize) for weight in matrices)
    return int(unquantised - saved + max((weight.numel() for weight in matrices), default=0) * dtype.itemsize)


def _packed_bytes(weight: torch.Tensor, quantize: str) -> int:
    rows, columns = weight.shape
    if quantize == "int8":
        return rows * (columns + SCALE_BYTES)
    return rows * (columns // 2 + -(-columns // GROUP) * SCALE_BYTES)
