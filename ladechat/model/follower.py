"""The program that holds one shard of a model: it computes its part of every pass that the engine asks for.

Run as `python -m ladechat.model.follower` by `Followers`. Its orders come on standard input, whose end ends it.
"""

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

from ladechat.model.followers import OUT_OF_MEMORY

SECONDS_FOR_THE_ENGINE = 5.0
"""As a rule, what goes wrong here goes wrong in the engine as well. It says so in better words, and may do so first."""


def main() -> NoReturn:
    """Load a shard and carry out orders until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the engine's business, and this ends with it
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[orders], daemon=True).start()
    from ladechat.model.memory import memory_is_used_up

    try:
        follow(_unpacked(orders))
    except Exception as error:  # whatever a model raises: the engine has to learn that this part is missing
        traceback.print_exc()
        time.sleep(SECONDS_FOR_THE_ENGINE)
        os._exit(OUT_OF_MEMORY if memory_is_used_up(error) else 1)
    raise AssertionError("The orders have no end: the end of the input is that of the process.")


def follow(orders: Iterator[object]) -> None:
    """Load the shard that the first order describes, then do what the others say."""
    import transformers

    from ladechat.model.leading import obey
    from ladechat.model.loading import choose_runner, leave_a_core_free
    from ladechat.model.tensor_parallel import Shard, meet
    from ladechat.model.weights import load_weights

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    shard = next(orders)
    assert isinstance(shard, Shard)
    leave_a_core_free(shard.processes)
    mesh = meet(shard)
    # All that the engine does with its shard while it loads has to be done here too: passes are made by all together.
    model = load_weights(shard.folder, shard.name, shard.device, shard.dtype, False, lambda _: None, mesh)
    obey(choose_runner(model, shard.context_length), orders)


def _read(orders: "queue.SimpleQueue[bytes]") -> None:
    """Take orders, also while a pass runs. The end of the input ends the process, whatever it is doing."""
    pipe = Connection(0, writable=False)
    try:
        while True:
            orders.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _unpacked(orders: "queue.SimpleQueue[bytes]") -> Iterator[object]:
    while True:
        yield pickle.loads(orders.get())


if __name__ == "__main__":
    main()
