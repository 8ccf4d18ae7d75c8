"""The number of threads with which a model computes on a CPU."""

import os
from functools import cache
from typing import NamedTuple

import torch

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


def _asked_for() -> int | None:
    """Return the number in OMP_NUM_THREADS, the first of a list by nesting level; None if there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return max(1, int(first)) if first.isdecimal() else None
