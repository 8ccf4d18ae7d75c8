"""`ladechat engine` with little room for what its decoders learn: it is full after some turns, and not after hours.

    python -m tests.engine.small_memories engine --model demo

What still grows then is nothing that fills up to its limit.
"""

from collections.abc import Callable
from functools import partialmethod
from typing import Any

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.drafters.recycling import Successors
from ladechat.decoder.drafters.suffix import SuffixDrafter
from ladechat.shell.cli import main

ROOM: dict[Callable[..., Any], dict[str, int]] = {
    NGramPool: {"capacity_bytes": 1 << 20},
    SuffixDrafter: {"capacity": 2048},
    Successors: {"capacity": 256},
}


def learn_little() -> None:
    """From now on, what learns from texts is made small."""
    for kind, room in ROOM.items():
        setattr(kind, "__init__", partialmethod(kind.__init__, **room))  # noqa: B010


if __name__ == "__main__":
    learn_little()
    main()
