"""Quantised weights: checkpoints that have them, and plain ones that torchao quantises while they are read.

On a CPU our kernels round plain weights when they are packed, see `ladechat.model.kernels.packing`.
"""

import importlib.util
import re
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.quantizers.auto import AutoHfQuantizer
from transformers.utils.import_utils import is_accelerate_available

from ladechat.installing import command_for, command_for_extra
from ladechat.model.checkpoint.faults import first_sentence
from ladechat.model.checkpoint.files import LoadError, LoadErrorCode

INSTALL = re.compile(r"pip install:? (?:-U |--upgrade )?['\"]?(?P<package>[\w.-]+(?:\[[\w,]+\])?(?:[<>=]=?[\w.]+)?)")
OTHER_COPY = "Use another copy of the model: one that is not quantised, or quantised in a way that runs here."

GROUP = 128
"""int4 weights that share a scale and a zero point. As int8, a row of a matrix shares a scale."""

SCALE_BYTES = 4


def quantization_method(config: Any) -> str | None:
    """Return the quantisation method named in a checkpoint's configuration; None for plain weights."""
    found = _settings(config)
    if found is None:
        return None
    method = found.get("quant_method")
    if method is None:  # bitsandbytes before 2023
        method = "bitsandbytes" if found.get("load_in_4bit") or found.get("load_in_8bit") else "unknown"
    return str(getattr(method, "value", method))


def check_quantization(name: str, config: Any, device: torch.device) -> bool:
    """Check with transformers that a quantised checkpoint can be loaded on this machine.

    Returns whether the weights are unpacked while they are loaded, as the device cannot compute with packed ones.

    Raises:
        LoadError: it cannot; the message says why.
    """
    settings = _settings(config)
    if settings is None:
        return False
    method = quantization_method(config)
    what = f"{name} is quantised with {method}"
    try:
        if not AutoHfQuantizer.supports_quant_method(settings):
            raise ValueError("transformers does not know this method.")
        quantizer = AutoHfQuantizer.from_config(settings, pre_quantized=True)
        quantizer.validate_environment(device_map={"": device}, weights_only=True)
    except ImportError as error:
        raise _missing(what, error) from error
    except Exception as error:  # transformers may raise anything on a configuration written by others
        message = f"{what}, which cannot be loaded on {device}: {first_sentence(error)}"
        raise LoadError("load_failed", message, OTHER_COPY) from error
    return bool(getattr(quantizer.quantization_config, "dequantize", False))


def described_parameters(config: Any) -> int:
    """Return the number of parameters of a configuration, counted on the meta device: packed weights hide it."""
    with torch.device("meta"):
        return int(AutoModelForCausalLM.from_config(config).num_parameters())


def _settings(config: Any) -> dict[str, Any] | None:
    """Return the quantisation section of a configuration, or of its language model's part."""
    text = config.get_text_config(decoder=True)
    found = getattr(config, "quantization_config", None) or getattr(text, "quantization_config", None)
    return found if found is None or isinstance(found, dict) else dict(found.to_dict())


def _missing(what: str, error: ImportError) -> LoadError:
    """Return an error that names the missing package, from transformers' install command or the missing module."""
    said = " ".join(str(error).split())
    named = INSTALL.search(said)
    package = named["package"] if named else error.name and error.name.partition(".")[0]
    if package is None:
        code: LoadErrorCode = "load_failed" if "GPU" in said else "missing_package"
        return LoadError(code, f"{what}, which cannot be loaded here: {first_sentence(error)}", OTHER_COPY)
    hint = f"Install it beside ladechat ({command_for(package)}), or use a copy of the model that is not quantised."
    return LoadError("missing_package", f"{what}, which needs the package {package}, and that is not here.", hint)


def check_weight_only(quantize: str, name: str, method: str | None, device: torch.device, dtype: torch.dtype) -> None:
    """Refuse a quantisation that our kernels, on a CPU, or torchao cannot do, before any weight is read.

    `method` is the one by which its weights are quantised already; None if they are not.

    Raises:
        LoadError: it is quantised already, there is no such kernel for this device or type, or a package is missing.
    """
    as_what = str(dtype).removeprefix("torch.")
    if method is not None:
        message = f"{name} is quantised already, with {method}, and cannot be quantised to {quantize}."
        raise LoadError("load_failed", message, "Leave --quantize away, or give the model that it was made from.")
    if device.type == "cpu":
        if dtype != torch.float32:
            message = f"On a CPU, quantised weights are computed with in float32, not in {as_what}."
            raise LoadError("load_failed", message, "Leave --dtype or --quantize away.")
        return
    if importlib.util.find_spec("torchao") is None:
        message = f"On {device}, --quantize needs torchao, which is not installed."
        raise LoadError("missing_package", message, f"Install it: {command_for_extra('quantize')}")
    if quantize == "int4" and device.type != "cuda":
        message = f"Weights of 4 bits need a CPU or a CUDA GPU: torchao has no int4 kernel for {device}."
        raise LoadError("load_failed", message, "Use --quantize int8.")
    if quantize == "int4" and dtype != torch.bfloat16:
        message = f"torchao computes with weights of 4 bits in bfloat16, not in {as_what}."
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
    packed = 0
    for rows, columns in (weight.shape for weight in matrices):
        packed += rows * (columns if quantize == "int8" else columns // 2)
        packed += rows * SCALE_BYTES * (1 if quantize == "int8" else -(-columns // GROUP))
    saved = sum(weight.numel() for weight in matrices) * dtype.itemsize - packed
    return int(unquantised - saved + max((weight.numel() for weight in matrices), default=0) * dtype.itemsize)
