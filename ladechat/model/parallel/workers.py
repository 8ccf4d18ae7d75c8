"""Rank 0's handle of the worker processes that hold the other shards of a model."""

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import NoReturn

OUT_OF_MEMORY = 3
"""The exit code of a worker whose memory is used up."""


class Workers:
    """Runs `python -P -m ladechat.model.parallel.worker` for each shard except the first, and sends them orders.

    Orders go through pipes, not through torch's process group: between questions a worker waits at its pipe without a
    limit, where a collective would time out. When rank 0 ends, in whatever way, the end of the pipe ends the worker.

    Args:
        processes: the number of processes that share the model, including rank 0.
        on_end: called with the exit code when a worker ends, in a separate thread.
        on_error: called with an error of a pass in rank 0, after which the workers are out of step; does not return.
    """

    def __init__(
        self, processes: int, on_end: Callable[[int], None], on_error: Callable[[Exception], NoReturn]
    ) -> None:
        self.processes = processes
        self.on_error = on_error
        self._on_end = on_end
        self._pipes: list[Connection] = []

    def start(self, orders: Sequence[object]) -> None:
        """Start the workers, each with its own first order."""
        for order in orders:
            theirs, ours = Pipe(duplex=False)
            # In rank 0's process group and session, so that a signal to these ends the worker too.
            # -P: nothing is imported from the working directory, which may be the folder of a model.
            command = [sys.executable, "-P", "-m", "ladechat.model.parallel.worker"]
            process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=2)
            theirs.close()
            ours.send(order)
            self._pipes.append(ours)
            threading.Thread(target=self._wait_for, args=[process], daemon=True).start()

    def send(self, order: object) -> None:
        """Send all workers the same order.

        Raises:
            OSError: one of them has ended.
        """
        for pipe in self._pipes:
            pipe.send(order)

    def _wait_for(self, process: "subprocess.Popen[bytes]") -> None:
        self._on_end(process.wait())
