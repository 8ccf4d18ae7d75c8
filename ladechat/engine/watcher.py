"""A small process that ends the engine when its input has ended and the engine has not.

The engine's own thread for commands sees that first. But no thread of Python runs while one call holds the interpreter
lock, and none runs in a process that is frozen. Another process
can see the end of a pipe without reading from it, and end the engine from outside.

This file is also the program of that process: it imports nothing but the standard library.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

GRACE_SECONDS = 10.0
"""How long an engine may take to see the end of its input itself; on a busy machine that is more than a moment."""

_HANG_UP = getattr(select, "POLLRDHUP", 0)
"""That the other end was closed is always told of a pipe; of a socket, where it is asked for."""


def watch_input(descriptor: int, grace_seconds: float = GRACE_SECONDS) -> "subprocess.Popen[bytes] | None":
    """Start the process that ends this one some seconds after the other end of the input was closed.

    It ends with this process. A file has no other end: then it does nothing. Where no process can be started, the
    engine runs without it.

    Args:
        descriptor: the input; it is not read from.
        grace_seconds: from the end of the input on.
    """
    alive, held = os.pipe()  # nobody else inherits the end that is held: it closes when this process ends
    watched = os.dup(descriptor)  # 0 is something else in the other process
    command = [sys.executable, "-I", "-S", __file__, str(watched), str(alive), str(grace_seconds)]
    try:
        with contextlib.suppress(OSError):
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(watched, alive),
            )
        os.close(held)
    finally:
        os.close(alive)
        os.close(watched)
    return None


def _watch(descriptor: int, alive: int, grace_seconds: float) -> None:
    """Wait for the end of the input, or of the engine, which is this process's parent."""
    engine = os.getppid()
    ends = select.poll()
    ends.register(descriptor, _HANG_UP)
    ends.register(alive, 0)
    if any(end == alive for end, _ in ends.poll()):
        return
    engine_ended = select.poll()
    engine_ended.register(alive, 0)
    deadline = time.monotonic() + grace_seconds
    while (left := deadline - time.monotonic()) > 0:
        if engine_ended.poll(1000 * left):
            return
    if os.getppid() == engine:
        os.kill(engine, signal.SIGKILL)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
