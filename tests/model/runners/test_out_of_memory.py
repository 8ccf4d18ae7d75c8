"""Which errors mean that the memory is used up, and which have the same words for something else."""

import errno
import os

import pytest
import torch

from ladechat.model.runners.out_of_memory import memory_is_used_up


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("MPS backend out of memory (MPS allocated: 17.92 GB)"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        RuntimeError("CUDA error: out of memory"),  # as it is raised outside of torch's allocator
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("unable to mmap 4096 bytes from file <model.bin>: Cannot allocate memory (12)"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ],
    ids=str,
)
def test_memory_that_is_used_up_is_recognised_whoever_says_it(error: Exception) -> None:
    assert memory_is_used_up(error)


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "models/out of memory/model.safetensors"),
        ValueError("'out of memory' is no role of a chat template"),
        KeyError("ALLOC_FAILED"),
        ImportError("libgomp.so.1: cannot allocate memory in static TLS block"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("out of resource: shared memory, Required: 294912, Hardware limit: 232448"),
    ],
    ids=str,
)
def test_the_same_words_for_something_else_are_not_memory(error: Exception) -> None:
    assert not memory_is_used_up(error)
