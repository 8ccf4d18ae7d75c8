"""The C library's heap while weights are converted."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

M_MMAP_THRESHOLD = -3
"""glibc's option: freed blocks of at least this size go back to the system."""
WHILE_READING = 1 << 20
AFTERWARDS = 32 << 20
"""The value to which glibc itself raises it as large blocks are freed, so that passes reuse memory."""


@contextmanager
def freed_at_once() -> Iterator[None]:
    """Return the memory of each matrix to the system once it is quantised or packed.

    glibc would retain it in its heaps: 205 million parameters, quantised from float32, held 936 MB after loading, and
    214 MB with this. Does nothing with another C library.
    """
    libc: Any = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        yield
        return
    libc.mallopt(M_MMAP_THRESHOLD, WHILE_READING)
    try:
        yield
    finally:
        libc.mallopt(M_MMAP_THRESHOLD, AFTERWARDS)
