"""The processes that hold the other shards of a model, as the engine sees them."""

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn

OUT_OF_MEMORY = 3
"""The exit code of one whose memory is used up."""


class Followers:
    """Runs `python -m ladechat.model.follower` for each shard but the first, and tells all of them what to do.

    Orders go through pipes, not through torch's process group: while nobody asks anything, a follower waits at its
    pipe, where a collective would reach its time limit. And the end of the pipe, however this process ends, ends it.

    Args:
        processes: how many share the model, this one included.
        on_end: called with the exit code when one of them ends; in a thread of its own.
        on_error: called with what went wrong in a pass here, after which the others are out of step; does not return.
    """

    def __init__(
        self, processes: int, on_end: Callable[[int], None], on_error: Callable[[Exception], NoReturn]
    ) -> None:
        self.processes = processes
        self.on_error = on_error
        self._on_end = on_end
        self._pipes: list[Connection] = []

    def start(self, orders: Sequence[object]) -> None:
        """Start them, each with an order of its own. Not before it is known that the model can be shared so."""
        for order in orders:
            theirs, ours = Pipe(duplex=False)
            # Of the engine's own group and session: what ends that as a whole ends it too.
            process = subprocess.Popen(
                [sys.executable, "-m", "ladechat.model.follower"], stdin=theirs.fileno(), stdout=2
            )
            theirs.close()
            ours.send(order)
            self._pipes.append(ours)
            threading.Thread(target=self._wait_for, args=[process], daemon=True).start()

    def tell(self, order: object) -> None:
        """Give all of them the same order.

        Raises:
            OSError: one of them has ended.
        """
        for pipe in self._pipes:
            pipe.send(order)

    def _wait_for(self, process: "subprocess.Popen[bytes]") -> None:
        self._on_end(process.wait())
