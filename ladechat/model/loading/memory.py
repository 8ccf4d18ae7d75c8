"""Memory: what a model needs before it is loaded, what is free, and what a process with a loaded model holds."""

import math
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from ladechat.model.checkpoint.files import OTHER_COPY, LoadError, in_words, weight_files
from ladechat.model.loading.quantization import described_parameters
from ladechat.model.runners.llama_form import GEMMAS, LLAMAS
from ladechat.model.runners.model_runner import ModelRunner

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


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device; None where they are unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return free_main_memory() if device.type == "cpu" else None


def free_main_memory(root: Path = Path("/")) -> int:
    """Return the main memory in bytes that this process may still take, by the kernel and by its control groups."""
    found = _number_after("MemAvailable:", root / "proc/meminfo")
    # macOS does not report free memory; all of it is an upper bound.
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if found is None else 1024 * found
    return min([free, *_control_groups(root)])


def _control_groups(root: Path) -> Iterator[int]:
    """Yield the bytes that each limit leaves (cgroup versions 1 and 2), from the process's own group to the root."""
    for controllers, path in _found(r"^\d+:(.*?):/?(.*)$", root / "proc/self/cgroup"):
        if not controllers:
            top, limit, usage, cached = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, limit = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            usage, cached = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        for part in (Path(path), *Path(path).parents):  # a container may not see its own group; then the root's counts
            folder = root / top / part
            most, used = _number_after("", folder / limit), _number_after("", folder / usage)
            if most is not None and used is not None:
                yield max(0, most - used + (_number_after(cached, folder / "memory.stat") or 0))


def _number_after(word: str, file: Path) -> int | None:
    """Return the number that follows a word at the beginning of a line, or None."""
    return next((int(number) for number in _found(rf"^{word}\s*(\d+)", file)), None)


def _found(pattern: str, file: Path) -> list[Any]:
    """Return what the groups of a pattern match in the lines of a file; nothing where it cannot be read."""
    try:
        return re.findall(pattern, file.read_text(), re.MULTILINE)
    except OSError:
        return []


def _tensors(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the type and the number of elements of each tensor of a checkpoint, from its files' valid headers."""
    for name in weight_files(folder) or []:
        with suppress(SafetensorError, OSError), safe_open(folder / name, "np") as file:
            for key in file.keys():  # noqa: SIM118 - it is no mapping
                found = file.get_slice(key)
                yield str(found.get_dtype()), math.prod(found.get_shape())


@dataclass(frozen=True)
class MemoryUse:
    """The bytes that this process holds; None where there are none, or where the system does not report them.

    Attributes:
        resident_bytes: main memory held now: the resident set.
        peak_bytes: the most main memory held so far, where the system does not report what is held now.
        device_bytes: GPU memory held by tensors.
        reserved_bytes: GPU memory that torch has reserved for them.
        cache_bytes: the KV cache, which is part of one of those.
    """

    resident_bytes: int | None
    peak_bytes: int | None
    device_bytes: int | None
    reserved_bytes: int | None
    cache_bytes: int | None


def memory_use(runner: ModelRunner) -> MemoryUse:
    """Return the memory held now by this process, which runs the runner."""
    resident = resident_bytes()
    cached = None if runner.cache is None else runner.cache.nbytes
    return MemoryUse(resident, peak_bytes() if resident is None else None, *device_bytes(runner.device), cached)


def resident_bytes(root: Path = Path("/")) -> int | None:
    """Return the main memory that this process holds, in bytes; None where no file in `root` says it, as on macOS."""
    pages = _number_after(r"\d+", root / "proc/self/statm")
    return None if pages is None else pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """Return the most main memory that this process has held so far, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def device_bytes(device: torch.device) -> tuple[int | None, int | None]:
    """Return the bytes of GPU memory held by this process's tensors, and those that torch has reserved for them."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    if device.type == "mps":
        return torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()
    return None, None
