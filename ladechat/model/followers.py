"""The processes beside this one that hold the other shards of a model. Imports no torch: they start while it loads it."""

import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from typing import NoReturn

OUT_OF_MEMORY = 3
"""The exit code of one whose memory is used up."""


class Followers:
    """Starts `python -m ladechat.model.follower` for each shard but the first, and tells all of them what to do.

    Orders go through pipes, not through torch's process group: a follower waits in a pipe for as long as nobody asks
    anything, where a collective would reach its time limit. And the end of its pipe, however this process ends, ends it.

    Args:
        processes: how many share the model, this one included.
        on_end: called with the exit code when one of them ends; in a thread of its own.
        on_error: called with what went wrong in a pass here, after which the others are out of step; does not return.

    Attributes:
        meeting_point: a socket on which the process group of all of them is set up.
    """

    def __init__(
        self, processes: int, on_end: Callable[[int], None], on_error: Callable[[Exception], NoReturn]
    ) -> None:
        self.processes = processes
        self.on_error = on_error
        self.meeting_point = socket.create_server(("127.0.0.1", 0), backlog=processes)
        self._pipes = []
        for _ in range(1, processes):
            theirs, ours = Pipe(duplex=False)
            # Of the engine's own group and session: what ends that as a whole ends it too.
            process = subprocess.Popen(
                [sys.executable, "-m", "ladechat.model.follower"], stdin=theirs.fileno(), stdout=sys.stderr.fileno()
            )
            theirs.close()
            self._pipes.append(ours)
            threading.Thread(target=lambda process=process: on_end(process.wait()), daemon=True).start()

    def tell(self, order: object) -> None:
        """Give all of them the same order.

        Raises:
            OSError: one of them has ended.
        """
        self.tell_each([order] * len(self._pipes))

    def tell_each(self, orders: Sequence[object]) -> None:
        """Give each its own order, in the order of the shards. Raises as `tell` does."""
        for pipe, order in zip(self._pipes, orders, strict=True):
            pipe.send_bytes(pickle.dumps(order))
