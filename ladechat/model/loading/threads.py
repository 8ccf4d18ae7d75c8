"""How many threads a model computes with on a CPU."""

import os
from functools import cache
from typing import NamedTuple

import torch

MOST_KERNEL_THREADS = 8
"""Small products have no more to share, and memory is the limit of the others."""


class Threads(NamedTuple):
    """The threads that a model computes with on a CPU.

    Attributes:
        torch: torch's own.
        kernels: those of our kernels; 0 where torch computes everything.
    """

    torch: int
    kernels: int = 0

    def use(self) -> None:
        """Give torch, in all of this process, so many: another model may have been computed since."""
        torch.set_num_threads(self.torch)


@cache
def default_threads() -> int:
    """How many threads torch takes where nobody sets a number: to be asked for before anybody does, and remembered."""
    return torch.get_num_threads()


def leave_a_core_free(processes: int = 1) -> None:
    """Let torch compute on all cores but one, divided among `processes` processes, unless OMP_NUM_THREADS is set.

    torch's threads wait for each other many times in a pass. One that shares its core with the screen delays all of
    them: on two cores, a pass then took ten times as long as on one thread.
    """
    default_threads()
    if _asked_for() is None:
        torch.set_num_threads(max(1, (available_cores() - 1) // processes))


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kernel_threads() -> int:
    """The threads that share the work of a kernel: one a core, unless OMP_NUM_THREADS is set.

    They share it in small chunks, and a thread that another program keeps from running gets none, so no core has to
    stay free: with another process using 20 % of one of two cores, passes on two threads took as long as on one (4
    slots) or less (1 slot: -13 %, 64 slots: -28 %); with one core fully used by others, 15 % longer.
    """
    return _asked_for() or min(available_cores(), MOST_KERNEL_THREADS)


def _asked_for() -> int | None:
    """The number in OMP_NUM_THREADS, which may also be a list of them, by level; None if there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return max(1, int(first)) if first.isdecimal() else None
