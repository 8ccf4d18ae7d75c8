"""What a loaded model takes of the memory, measured."""

import os
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from transformers import PreTrainedModel

from ladechat.model.kv_cache import SlabCache


class Cached(Protocol):
    """A runner, as far as it is asked here."""

    @property
    def model(self) -> PreTrainedModel:
        """The model, on its device."""
        ...

    @property
    def cache(self) -> SlabCache | None:
        """Its keys and values; None where the model has a memory of its own."""
        ...


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that this process takes; None where there is no such thing, or where it is not told.

    Attributes:
        resident_bytes: main memory that it holds now: the resident set.
        peak_bytes: the most it has held so far, where the system does not tell what it holds now.
        device_bytes: memory of the GPU that its tensors take.
        reserved_bytes: memory of the GPU that torch holds for them.
        cache_bytes: keys and values, which are part of one of those.
    """

    resident_bytes: int | None
    peak_bytes: int | None
    device_bytes: int | None
    reserved_bytes: int | None
    cache_bytes: int | None


def memory_use(runner: Cached) -> MemoryUse:
    """What the process of this runner takes now."""
    resident = resident_bytes()
    device, reserved = device_bytes(runner.model.device)
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
    """The memory of a GPU that the tensors of this process take, and what torch holds for them."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    if device.type == "mps":
        return torch.mps.current_allocated_memory(), torch.mps.driver_allocated_memory()
    return None, None
