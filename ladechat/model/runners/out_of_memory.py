"""Out-of-memory errors of all devices, and returning memory to the device."""

import errno
import gc
import os

import torch

MESSAGES = ("out of memory", "can't allocate memory", "ALLOC_FAILED", os.strerror(errno.ENOMEM))
"""Messages of torch's errors without a class of their own: MPS's, the CPU allocator's, cuBLAS's, and of mapped files.

Other libraries' errors may contain the same words: in the name of a missing file, or in a text that they quote.
"""


def memory_is_used_up(error: BaseException) -> bool:
    """Return whether an error means that memory is used up, on any device."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(message in str(error) for message in MESSAGES)


def release_memory(device: torch.device) -> None:
    """Return torch's cached free memory to the device."""
    gc.collect()  # reference cycles of frames and tracebacks may hold tensors of a failed pass
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
