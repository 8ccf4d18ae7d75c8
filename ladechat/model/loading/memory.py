"""Memory: what is free, and what a process with a loaded model holds."""

import os
import re
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ladechat.model.runners.model_runner import ModelRunner


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
