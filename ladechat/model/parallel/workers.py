"""The worker processes that compute with a model together: rank 0's handle of them, and the program of one.

A worker runs `python -P -m ladechat.model.parallel.workers`. It reads orders from standard input until its end, and
computes its part of every pass: with its shard of the model or, in lookahead parallelism, with the whole model. torch
is imported by that program alone.
"""

import faulthandler
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from ladechat.model.runners.model_runner import ModelRunner

OUT_OF_MEMORY = 3
"""The exit code of a worker whose memory is used up."""

READ_ON = "read on"
"""The order to read the next chunk of a prompt. Other orders are methods of a runner, with their arguments."""

SECONDS_FOR_THE_REASON = 2.0
"""Seconds before rank 0 reports the error of a pass: if a worker has died, its end is reported instead."""

SECONDS_FOR_RANK_0 = 5.0
"""An error in a worker usually happens in rank 0 as well, which has so long to report it first, and better."""


class Workers:
    """Runs `python -P -m ladechat.model.parallel.workers` for each shard except the first, and sends them orders.

    Orders go through pipes, not through torch's process group: between questions a worker waits at its pipe without a
    limit, where a collective would time out. When rank 0 ends, in whatever way, the end of the pipe ends the worker.

    Args:
        processes: the number of processes, including rank 0.
        whole: whether each holds the whole model, and the slots of a pass are divided; else the model is.
        on_end: called with the exit code when a worker ends, in a separate thread.
        on_error: called with an error of a pass in rank 0, after which the workers are out of step; does not return.
    """

    def __init__(
        self, processes: int, whole: bool, on_end: Callable[[int], None], on_error: Callable[[Exception], NoReturn]
    ) -> None:
        self.processes, self.whole = processes, whole
        self.on_error = on_error
        self._on_end = on_end
        self._pipes: list[Connection] = []

    def start(self, orders: Sequence[object]) -> None:
        """Start the workers, each with its own first order."""
        for order in orders:
            theirs, ours = Pipe(duplex=False)
            # In rank 0's process group and session, so that a signal to these ends the worker too.
            # -P: nothing is imported from the working directory, which may be the folder of a model.
            command = [sys.executable, "-P", "-m", "ladechat.model.parallel.workers"]
            process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=2)
            theirs.close()
            ours.send(order)
            self._pipes.append(ours)
            threading.Thread(target=lambda one=process: self._on_end(one.wait()), daemon=True).start()

    @property
    def option(self) -> str:
        """The option that starts them."""
        return "--lookahead-parallel" if self.whole else "--tensor-parallel"

    def send(self, order: object) -> None:
        """Send all workers the same order.

        Raises:
            OSError: one of them has ended.
        """
        pickled = pickle.dumps(order)
        for pipe in self._pipes:
            pipe.send_bytes(pickled)


def how_it_ended(exit_code: int) -> str:
    """Return a sentence about the end of a worker, without which no pass can run."""
    if exit_code == OUT_OF_MEMORY:
        return "The memory of one of the processes that share the model is used up."
    how = f"by signal {-exit_code}" if exit_code < 0 else f"with exit code {exit_code}"
    return f"One of the processes that share the model has ended ({how}), and the others cannot go on without it."


def main() -> NoReturn:
    """Load a shard and execute orders until the input ends."""
    faulthandler.enable()  # a crash of compiled code writes the stacks into the engine's log
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # rank 0 handles Ctrl+C, and this process ends with it
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[orders], daemon=True).start()
    from ladechat.model.runners.out_of_memory import memory_is_used_up

    try:
        _work(map(pickle.loads, iter(orders.get, None)))
    except Exception as error:  # on any error of a model, rank 0 has to learn that this shard is missing
        time.sleep(SECONDS_FOR_RANK_0)  # if rank 0 has ended, this process ends meanwhile, and has nothing to say
        traceback.print_exc()
        os._exit(OUT_OF_MEMORY if memory_is_used_up(error) else 1)
    raise AssertionError("The orders have no end: the end of the input ends the process.")


def _work(orders: Iterator[Any]) -> None:
    """Load the shard that the first order describes, then execute the others."""
    import transformers

    from ladechat.model.loading.device import leave_a_core_free
    from ladechat.model.loading.self_check import choose_runner
    from ladechat.model.loading.weights import load_weights
    from ladechat.model.parallel.part import PartRunner
    from ladechat.model.parallel.shards import Shard, join_group

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    shard: Shard = next(orders)
    leave_a_core_free(shard.processes)
    mesh = join_group(shard)
    # From here on the same passes as in rank 0 run in all processes together, if they share the layers.
    model = load_weights(shard.folder, shard.name, shard.device, shard.dtype, False, lambda _: None, mesh)
    runner = choose_runner(model, shard.context_length)
    follow_orders(runner if mesh else PartRunner(runner, shard.rank, shard.processes), orders)


def follow_orders(runner: "ModelRunner", orders: Iterator[Any]) -> None:
    """Execute the orders of a `Rank0Runner` with a worker's runner, until they end. Logits are dropped."""
    reading: Iterator[int] = iter(())
    for name, *arguments in orders:
        if name == "prefill":
            reading = runner.prefill(*arguments)
        if name in ("prefill", READ_ON):
            next(reading, None)
        else:
            getattr(runner, name)(*arguments)


def _read(orders: "queue.SimpleQueue[bytes]") -> None:
    """Receive orders, even while a pass runs. The end of the input ends the process at once."""
    pipe = Connection(0, writable=False)
    try:
        while True:
            orders.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
