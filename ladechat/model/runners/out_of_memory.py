"""Errors that mean that a device's memory is used up, and giving memory back to the device."""

import errno
import gc
import os

import torch

MESSAGES = ("out of memory", "can't allocate memory", "ALLOC_FAILED", os.strerror(errno.ENOMEM))
"""In torch's errors without a class of their own: MPS's, the CPU allocator's, cuBLAS's, and those of mapped files.

Other libraries' errors may hold the same words: in the name of a file that is missing, or in a text that they quote.
"""


def memory_is_used_up(error: BaseException) -> bool:
    """Whether an error is about memory, on any device."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(message in str(error) for message in MESSAGES)


def release_memory(device: torch.device) -> None:
    """Give the device back what torch keeps of freed memory."""
    gc.collect()  # a failed pass may live on in a circle of frames and tracebacks
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
