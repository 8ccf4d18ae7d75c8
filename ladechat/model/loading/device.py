"""The device, the number type and the threads with which a model computes."""

import logging
import os
from functools import cache
from typing import Any, NamedTuple

import torch

from ladechat.model.checkpoint.files import LoadError
from ladechat.model.kernels.build import Build, BuildError
from ladechat.model.kernels.library import Library, load_library

logger = logging.getLogger(__name__)

MOST_KERNEL_THREADS = 8
"""Small products do not gain from more threads, and the others are bound by memory."""


class Threads(NamedTuple):
    """The numbers of threads with which a model computes on a CPU.

    Attributes:
        torch: torch's threads.
        kernels: the threads of our kernels; 0 where torch computes everything.
    """

    torch: int
    kernels: int = 0

    def use(self) -> None:
        """Set torch's number of threads, for the whole process: another model may have changed it."""
        torch.set_num_threads(self.torch)


@cache
def default_threads() -> int:
    """Return torch's default number of threads. Has to be called, and is cached, before the number is set."""
    return torch.get_num_threads()


def leave_a_core_free(processes: int = 1) -> None:
    """Make torch use all cores but one, divided among `processes` processes, unless OMP_NUM_THREADS is set.

    torch's threads wait for each other many times per pass. One that shares its core with the UI delays all of them: on
    two cores, a pass then took ten times as long as on one thread.
    """
    default_threads()
    if _asked_for() is None:
        torch.set_num_threads(max(1, (available_cores() - 1) // processes))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kernel_threads() -> int:
    """Return the number of threads that share the work of a kernel: one per core, unless OMP_NUM_THREADS is set.

    They share it in small chunks, and a thread that another program keeps off its core takes none, so no core has to
    stay free: with another process using 20 % of one of two cores, passes on two threads took as long as on one (4
    slots) or less (1 slot: -13 %, 64 slots: -28 %); with one core fully used by others, 15 % longer.
    """
    return _asked_for() or min(available_cores(), MOST_KERNEL_THREADS)


def kernels_for(build: Build | None, quantize: str | None) -> tuple[Library | None, str | None]:
    """Return the kernels, if a model is to have them and they can be built, and a notice for the user if they cannot.

    Raises:
        LoadError: its weights cannot be quantised without the kernels.
    """
    needed, said = f"--quantize {quantize} needs ladechat's kernels for the CPU.", ""
    if build is not None:
        try:
            return load_library(build, kernel_threads()), None
        except BuildError as error:
            said = str(error)
    if quantize is not None:
        raise LoadError("load_failed", f"{needed} {said}".strip(), "Leave --quantize away.")
    if not said:
        return None, None
    missing = f"Answers are slower than they could be, without ladechat's kernels for the CPU. {said}"
    logger.warning(missing)
    return None, missing


def _asked_for() -> int | None:
    """Return the number in OMP_NUM_THREADS, the first of a list by nesting level; None if there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return max(1, int(first)) if first.isdecimal() else None


def choose_device(wanted: str) -> torch.device:
    """Return the requested device; for "auto" a GPU if there is one, else the CPU.

    Raises:
        LoadError: torch cannot use such a device on this machine.
    """
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        hint = "Use --device auto, cpu, cuda, cuda:1 or mps."
        raise LoadError("load_failed", f"There is no device {wanted!r} that torch could use here.", hint) from error
    return device


def choose_dtype(wanted: str, device: torch.device, config: Any) -> torch.dtype:
    """Return the requested type; for "auto" float32 on a CPU, where half precision is slower, else 16 bits.

    That is the checkpoint's own type where the device supports it, or else float16.

    Raises:
        LoadError: torch has no such floating-point type, or cannot compute in it.
    """
    if wanted != "auto":
        dtype = getattr(torch, wanted, None)
        # Floating-point numbers of one byte torch can only store.
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point or dtype.itemsize == 1:
            message = f"There is no floating-point type {wanted!r} that a model computes in."
            raise LoadError("load_failed", message, "Use --dtype auto, float32, bfloat16, float16 or float64.")
        return dtype
    if device.type == "cpu":
        return torch.float32
    own = getattr(config, "dtype", None) or torch.float16
    if own == torch.bfloat16 and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        return torch.float16
    return torch.float16 if own == torch.float32 or device.type == "mps" else own


def slower_on_cpu(device: torch.device, dtype: str) -> str | None:
    """Return why the requested type makes a model slower than it could be on a CPU; None where it does not.

    A pass of SmolLM2-135M took 1.8 times as long in bfloat16 as in float32 with the kernels (AVX-512, 1 and 8 slots),
    and up to 3.5 times in float16.
    """
    if device.type == "cpu" and dtype not in ("auto", "float32"):
        return f"on a CPU, passes in {dtype} mostly take longer than in float32"
    return None


def device_name(device: torch.device) -> str:
    """Return torch's name of a device, and the model of a GPU."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
