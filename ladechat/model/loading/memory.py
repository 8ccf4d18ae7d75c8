"""The memory check before a model is loaded: the bytes that it needs, and those that are free."""

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ladechat.model.checkpoint.files import OTHER_COPY, LoadError, in_words, weight_files
from ladechat.model.loading.quantization import described_parameters

USEFUL_CONTEXT = 2048
"""The tokens of KV cache that must fit in addition to the weights: a usual conversation. The cache grows as needed."""

LONGEST_HEADER = 100_000_000
MOST_IN_A_TENSOR = 2**48
"""The largest plausible dimension, and file offset in bytes, in a header."""
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

    Args:
        folder: its files, of which only the headers are read.
        name: its name in messages.
        device: the device on which it will run.
        dtype: the type to which its weights are converted.
        cache_bytes: the size of a useful KV cache.
        unpacked_parameters: the number of its weights, if they are unpacked while they are loaded.
        quantised_bytes: the size of its weights, if they are quantised while they are loaded.

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
        raise LoadError("out_of_memory", f"{message}, and {device} has {in_words(free)} free.", _hint(device, dtype))
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
    for tensor in _tensors(folder):
        wanted = tensor.elements * dtype.itemsize if tensor.kind in FLOATS else tensor.stored
        total += wanted
        converted += wanted if FLOATS.get(tensor.kind, dtype) != dtype else 0
    return total, converted


def check_described(folder: Path, name: str, config: Any) -> None:
    """Refuse a checkpoint whose config.json describes far more weights than its files hold, before memory is allocated.

    Args:
        folder: its files, of which only the headers are read. Where they cannot be read, loading them gives the error.
        name: its name in messages.
        config: the model's configuration.

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
        held = sum(tensor.elements for tensor in tensors)
        if described <= MOST_DESCRIBED * held:
            return
        what = f"{described:,} weights, and its files hold {held:,}"
    raise LoadError("load_failed", f"The config.json of {name} describes {what}.", OTHER_COPY)


def useful_cache_bytes(config: Any, context_length: int, dtype: torch.dtype) -> int:
    """Return the bytes of keys and values of a usual conversation; 0 where the configuration does not tell."""
    layers, queries, hidden = (
        getattr(config, key, None) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size")
    )
    heads = getattr(config, "num_key_value_heads", None) or queries
    if not (isinstance(layers, int) and isinstance(queries, int) and isinstance(hidden, int) and queries > 0):
        return 0
    width = getattr(config, "head_dim", None) or hidden // queries
    if not (isinstance(heads, int) and isinstance(width, int)):
        return 0
    return min(context_length, USEFUL_CONTEXT) * 2 * layers * heads * width * dtype.itemsize


def free_memory(device: torch.device) -> int | None:
    """Return the free bytes of a device; None where they are unknown."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return free_main_memory() if device.type == "cpu" else None


def free_main_memory(root: Path = Path("/")) -> int | None:
    """Return the main memory in bytes that this process may still take, by the kernel and by its control groups.

    Args:
        root: the folder of proc and sys.
    """
    found = _number_after("MemAvailable:", root / "proc/meminfo")
    limits = [room for room in _control_groups(root) if room is not None]
    if found is not None:
        return min([1024 * found, *limits])
    try:  # macOS does not report free memory; all of it is an upper bound
        return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits])
    except (ValueError, OSError):
        return None


def _control_groups(root: Path) -> Iterator[int | None]:
    """Yield the bytes that each limit leaves (cgroup versions 1 and 2), from the process's own group to the root."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, limit, usage, cached = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, limit = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
            usage, cached = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        group = Path(path.lstrip("/"))
        for part in (group, *group.parents):  # a container may not see its own group; then the root shows its limit
            folder = root / top / part
            most, used = _number_after("", folder / limit), _number_after("", folder / usage)
            if most is not None and used is not None:
                yield max(0, most - used + (_number_after(cached, folder / "memory.stat") or 0))


def _number_after(word: str, file: Path) -> int | None:
    """Return the number that follows a word at the beginning of a line, or None."""
    try:
        found = re.search(rf"^{re.escape(word)}\s*(\d+)", file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


class _Tensor(NamedTuple):
    """A tensor as described in a header: its type, its number of elements, and its bytes in the file."""

    kind: str
    elements: int
    stored: int


def _tensors(folder: Path) -> Iterator[_Tensor]:
    """Yield the tensors of a checkpoint, from the headers of its files; none for an invalid header."""
    for name in weight_files(folder) or []:
        try:
            with (folder / name).open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                header = json.loads(file.read(length)) if length <= LONGEST_HEADER else {}
            yield from [_tensor(one) for key, one in header.items() if key != "__metadata__"]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue


def _tensor(entry: dict[str, Any]) -> _Tensor:
    """Return the tensor of an entry of a header.

    Raises:
        ValueError: the entry has impossible numbers.
        LookupError, TypeError: it has another form.
    """
    start, end = entry["data_offsets"]
    numbers = [*entry["shape"], start, end]
    if not all(isinstance(number, int) and 0 <= number <= MOST_IN_A_TENSOR for number in numbers):
        raise ValueError(f"a header has {str(entry)[:80]}")
    return _Tensor(str(entry["dtype"]), math.prod(entry["shape"]), end - start)


def _hint(device: torch.device, dtype: torch.dtype) -> str:
    ways = ["--dtype bfloat16"] if dtype.itemsize > torch.bfloat16.itemsize else []
    ways += ["--device cpu"] if device.type != "cpu" else []
    return f"Try {', '.join([*ways, 'a smaller or a quantised model'])}, or close what else uses this memory."
