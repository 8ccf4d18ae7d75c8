"""The program of a worker process, which holds one shard of a model and computes its part of every pass.

Run as `python -P -m ladechat.model.parallel.worker` by `Workers`. It reads orders from standard input until its end.
"""

import faulthandler
import os
import pickle
import queue
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import NoReturn

from ladechat.model.parallel.workers import OUT_OF_MEMORY

SECONDS_FOR_RANK_0 = 5.0
"""An error in a worker usually happens in rank 0 as well, which has so long to report it first, and better."""


def main() -> NoReturn:
    """Load a shard and execute orders until the input ends."""
    faulthandler.enable()  # a crash of compiled code writes the stacks into the engine's log
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # rank 0 handles Ctrl+C, and this process ends with it
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[orders], daemon=True).start()
    from ladechat.model.runners.out_of_memory import memory_is_used_up

    try:
        work(_unpickled(orders))
    except Exception as error:  # on any error of a model, rank 0 has to learn that this shard is missing
        traceback.print_exc()
        time.sleep(SECONDS_FOR_RANK_0)
        os._exit(OUT_OF_MEMORY if memory_is_used_up(error) else 1)
    raise AssertionError("The orders have no end: the end of the input ends the process.")


def work(orders: Iterator[object]) -> None:
    """Load the shard that the first order describes, then execute the others."""
    import transformers

    from ladechat.model.loading.self_check import choose_runner
    from ladechat.model.loading.threads import leave_a_core_free
    from ladechat.model.loading.weights import load_weights
    from ladechat.model.parallel.rank0 import follow_orders
    from ladechat.model.parallel.shards import Shard, join_group

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    shard = next(orders)
    assert isinstance(shard, Shard)
    leave_a_core_free(shard.processes)
    mesh = join_group(shard)
    # From here on the same passes as in rank 0 run in all processes together.
    model = load_weights(shard.folder, shard.name, shard.device, shard.dtype, False, lambda _: None, mesh)
    follow_orders(choose_runner(model, shard.context_length), orders)


def _read(orders: "queue.SimpleQueue[bytes]") -> None:
    """Receive orders, even while a pass runs. The end of the input ends the process at once."""
    pipe = Connection(0, writable=False)
    try:
        while True:
            orders.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _unpickled(orders: "queue.SimpleQueue[bytes]") -> Iterator[object]:
    while True:
        yield pickle.loads(orders.get())


if __name__ == "__main__":
    main()
