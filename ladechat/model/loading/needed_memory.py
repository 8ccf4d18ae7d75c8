"""The memory that a model needs, before it is loaded."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from ladechat.model.checkpoint.files import OTHER_COPY, LoadError, in_words, weight_files
from ladechat.model.loading.memory import free_memory
from ladechat.model.loading.quantization import described_parameters
from ladechat.model.runners.llama_form import GEMMAS, LLAMAS

USEFUL_CONTEXT = 2048
"""The tokens of KV cache that must fit in addition to the weights: a usual conversation. The cache grows as needed."""

MOST_DESCRIBED = 2
"""The factor by which a config.json may describe more weights than the files hold. transformers would allocate missing
ones, and fill them with random numbers."""
FLOATS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
"""The tensor types, by safetensors' names, that are converted. Others are packed weights, which are not."""


def check_memory(
    folder: Path,
    name: str,
    device: torch.device,
    dtype: torch.dtype,
    cache_bytes: int,
    unpacked_parameters: int | None = None,
    quantised_bytes: int | None = None,
) -> None:
    """Refuse a model that does not fit the free memory, with the figures.

    A model that is converted on its way to a GPU is temporarily in main memory, so it has to fit there as well.
    Weights are counted by the headers of the files, except those that are unpacked or quantised while they are read.

    Raises:
        LoadError: it needs more memory than is free.
    """
    weights, converted = weight_bytes(folder, dtype)
    if unpacked_parameters is not None:
        weights = converted = unpacked_parameters * dtype.itemsize
    if quantised_bytes is not None:
        weights = converted = quantised_bytes
    kind = str(dtype).removeprefix("torch.")
    free = free_memory(device)
    if free is not None and weights + cache_bytes > free:
        parts = f"weights {in_words(weights)}, cache {in_words(cache_bytes)}"
        message = f"{name} needs {in_words(weights + cache_bytes)} of memory as {kind} ({parts})"
        ways = ["--dtype bfloat16"] if dtype.itemsize > torch.bfloat16.itemsize else []
        ways += ["--device cpu"] if device.type != "cpu" else []
        hint = f"Try {', '.join([*ways, 'a smaller or a quantised model'])}, or close what else uses this memory."
        raise LoadError("out_of_memory", f"{message}, and {device} has {in_words(free)} free.", hint)
    free = free_memory(torch.device("cpu"))
    if device.type == "cuda" and free is not None and converted > free:
        message = f"{name} is converted to {kind} on its way to {device}, which takes {in_words(converted)}"
        hint = "Give the --dtype that the checkpoint has, or close what else is running."
        raise LoadError("out_of_memory", f"{message} of main memory, and {in_words(free)} are free.", hint)


def weight_bytes(folder: Path, dtype: torch.dtype) -> tuple[int, int]:
    """Return the bytes of a checkpoint's weights in memory as this type, and of those that have to be converted to it.

    Both are 0 where its files cannot be read: loading them gives the error. On a CPU, tensors that need no conversion
    stay in the mapped file (measured on transformers 5.17: 1 GB of float16 loaded as float16 takes no memory of its
    own, as float32 never more than the resulting 2 GB); but weights that do not fit would be read from disk for each
    token.
    """
    total = converted = 0
    for kind, elements in _tensors(folder):
        bits = re.search(r"\d+", kind)  # as in F8_E4M3; BOOL takes a byte
        wanted = elements * (dtype.itemsize * 8 if kind in FLOATS else int(bits[0]) if bits else 8) // 8
        total += wanted
        converted += wanted if FLOATS.get(kind, dtype) != dtype else 0
    return total, converted


def own_type(folder: Path, model_type: str) -> torch.dtype | None:
    """Return the 16-bit type of all weights of a checkpoint, in which they can be read to be packed at once.

    None where its files hold others, and for models that may compute more than their weights in the type in which they
    are read, such as tables of sines.
    """
    types = {FLOATS.get(kind) for kind, _ in _tensors(folder)}
    own = types.pop() if len(types) == 1 else None
    return own if model_type in LLAMAS + GEMMAS and own in (torch.bfloat16, torch.float16) else None


def check_described(folder: Path, name: str, config: Any) -> None:
    """Refuse a checkpoint whose config.json describes far more weights than its files hold, before memory is allocated.

    Where the headers of its files cannot be read, loading them gives the error.

    Raises:
        LoadError: it describes more layers than there are tensors, or over `MOST_DESCRIBED` times their elements.
    """
    tensors = list(_tensors(folder))
    if not tensors:
        return
    layers = config.get_text_config().num_hidden_layers
    if layers > len(tensors):
        what = f"{layers:,} layers, and its files hold {len(tensors):,} tensors"
    else:
        try:
            described = described_parameters(config)
        except Exception:  # such a model cannot be built without memory, or not at all
            return
        held = sum(elements for _, elements in tensors)
        if described <= MOST_DESCRIBED * held:
            return
        what = f"{described:,} weights, and its files hold {held:,}"
    raise LoadError("load_failed", f"The config.json of {name} describes {what}.", OTHER_COPY)


def useful_cache_bytes(config: Any, context_length: int, dtype: torch.dtype) -> int:
    """Return the bytes of keys and values of a usual conversation; 0 where the configuration does not tell."""
    queries = getattr(config, "num_attention_heads", None)
    heads = getattr(config, "num_key_value_heads", None) or queries
    try:
        width = getattr(config, "head_dim", None) or config.hidden_size // queries
        numbers = [min(context_length, USEFUL_CONTEXT), 2, config.num_hidden_layers, heads, width, dtype.itemsize]
    except (AttributeError, TypeError):  # some model types have other entries
        return 0
    return math.prod(numbers) if all(isinstance(number, int) for number in numbers) else 0  # or one for each layer


def _tensors(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the type and the number of elements of each tensor of a checkpoint, from its files' valid headers."""
    for name in weight_files(folder) or []:
        with suppress(SafetensorError, OSError), safe_open(folder / name, "np") as file:
            for key in file.keys():  # noqa: SIM118 - it is no mapping
                found = file.get_slice(key)
                yield str(found.get_dtype()), math.prod(found.get_shape())
