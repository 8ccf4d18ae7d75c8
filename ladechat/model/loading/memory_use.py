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
    """What is needed of a runner here."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        ...

    @property
    def cache(self) -> SlabCache | None:
        """Its keys and values; None where the model has a memory of its own."""
        ...


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that this process holds; None where there are none, or where the system does not say.

    Attributes:
        resident_bytes: main memory held now: the resident set.
        peak_bytes: the most held so far, where the system does not say what is held now.
        device_bytes: memory of the GPU held by tensors.
        reserved_bytes: memory of the GPU that torch reserved for them.
        cache_bytes: keys and values, part of one of those.
    """

    resident_bytes: int | None
    peak_bytes: int | None
    device_bytes: int | None
    reserved_bytes: int | None
    cache_bytes: int | None


def memory_use(runner: Cached) -> MemoryUse:
    """The memory held by the process of this runner now."""
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
    """The main memory that this process holds; None where the system has no such file, as macOS.

    Args:
        root: the folder that has proc.
    """
    try:
        pages = int((root / "proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """The most main memory that this process has held so far."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def device_bytes(device: torch.device) -> tuple[int | None, int | None]:
    """The memory of a GPU held by the tensors of this process, and what torch reserved for them."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    if device.type == "mps":
        return torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()
    return None, None
