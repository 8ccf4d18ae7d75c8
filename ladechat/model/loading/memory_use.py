"""The memory of a process with a loaded model, measured."""

import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from ladechat.model.runners.kv_cache import SlabCache


class Cached(Protocol):
    """The part of a runner that memory measurement needs."""

    @property
    def device(self) -> torch.device:
        """The model's device."""
        ...

    @property
    def cache(self) -> SlabCache | None:
        """The KV cache; None where the model has its own kind of state."""
        ...


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


def memory_use(runner: Cached) -> MemoryUse:
    """Return the memory held now by this process, which runs the runner."""
    resident = resident_bytes()
    device, reserved = device_bytes(runner.device)
    return MemoryUse(
        resident_bytes=resident,
        peak_bytes=peak_bytes() if resident is None else None,
        device_bytes=device,
        reserved_bytes=reserved,
        cache_bytes=None if runner.cache is None else runner.cache.nbytes,
    )


def resident_bytes(root: Path = Path("/")) -> int | None:
    """Return the main memory that this process holds, in bytes; None where the system has no such file, as on macOS.

    Args:
        root: the folder of proc.
    """
    try:
        pages = int((root / "proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


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
