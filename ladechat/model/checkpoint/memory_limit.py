"""Work that may take only so much memory, whatever it does: the system refuses the process more (RLIMIT_AS)."""

import resource
import threading
from collections.abc import Callable
from pathlib import Path


def within_memory(work: Callable[[], str], most_bytes: int) -> str:
    """What `work` returns. Until then the process may take `most_bytes` more than it has, or what its user allows it.

    Only Linux limits that; elsewhere the work simply runs. The limit holds for all threads.

    Raises:
        MemoryError: it takes more.
        BaseException: what `work` raised.
    """
    try:
        try:
            _limit.lower(work, most_bytes)
            return work()
        finally:
            _limit.restore(work)
    finally:
        _limit.restore(work)  # again: whoever gives up the work (`unless_stopped`) may do so in the middle of the first


class _Limit:
    """The limit of this process. It is low until the last of all works ends: one that was given up may still run when
    the next one begins.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._works: set[Callable[[], str]] = set()
        self._before = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def lower(self, work: Callable[[], str], most_bytes: int) -> None:
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
        except OSError:  # as on macOS
            return
        most = pages * resource.getpagesize() + most_bytes
        with self._lock:
            if not self._works:
                self._before = resource.getrlimit(resource.RLIMIT_AS)
            self._works.add(work)
            soft, hard = self._before
            resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))

    def restore(self, work: Callable[[], str]) -> None:
        with self._lock:
            if self._works == {work}:
                resource.setrlimit(resource.RLIMIT_AS, self._before)
            self._works.discard(work)


_limit = _Limit()
