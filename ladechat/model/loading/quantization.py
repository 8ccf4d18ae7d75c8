"""Checks whether transformers can load a quantised checkpoint on this machine."""

import re
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.quantizers.auto import AutoHfQuantizer

from ladechat.installing import command_for
from ladechat.model.checkpoint.faults import first_sentence
from ladechat.model.checkpoint.files import LoadError, LoadErrorCode

INSTALL = re.compile(r"pip install:? (?:-U |--upgrade )?['\"]?(?P<package>[\w.-]+(?:\[[\w,]+\])?(?:[<>=]=?[\w.]+)?)")
OTHER_COPY = "Use another copy of the model: one that is not quantised, or quantised in a way that runs here."


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

    Returns:
        Whether the weights are unpacked while they are loaded, because the device cannot compute with packed ones.

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
    if found is None or isinstance(found, dict):
        return found
    return dict(found.to_dict())


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
