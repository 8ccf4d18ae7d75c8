"""A small process that ends the engine when the engine's input has ended and the engine has not.

The engine's own command thread sees that first. But no Python thread runs while one call holds the interpreter lock,
and none runs in a process that is frozen. Another process can see the end of a pipe without reading from it, and end
the engine from outside. (Linux could end the engine with its parent, `PR_SET_PDEATHSIG`; macOS could not.)

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
"""How long an engine may take to see the end of its input itself; more than a moment, for a busy machine."""

LOOK_SECONDS = 1.0
"""The interval between two looks at the input and the engine."""

_HANG_UP = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
"""The `poll` events for a closed other end: the first for a pipe, the second for a socket on Linux."""


def watch_input(descriptor: int, grace_seconds: float = GRACE_SECONDS) -> "subprocess.Popen[bytes] | None":
    """Start the process that ends this one some seconds after the other end of the input was closed.

    It ends with this process. The input is not read from; if it is a file, which has no other end, nothing happens.
    Where no process can be started, the engine runs without it: returns None.
    """
    watched = os.dup(descriptor)  # 0 is something else in the other process
    command = [sys.executable, "-I", "-S", __file__, str(watched), str(os.getpid()), str(grace_seconds)]
    try:
        with contextlib.suppress(OSError):
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(watched,),
            )
    finally:
        os.close(watched)
    return None


def watch(descriptor: int, engine: int, grace_seconds: float) -> None:
    """Poll the input and the engine, this process's parent, until the engine has ended or has to be ended.

    It polls at intervals and does not wait for an event: on macOS a `poll` that asks for no data never sees the end of
    a pipe, and one that asks for data returns at once as long as nobody reads them.
    """
    ended_at: float | None = None
    while os.getppid() == engine:
        if ended_at is None and _has_hung_up(descriptor):
            ended_at = time.monotonic()
        if ended_at is not None and time.monotonic() - ended_at >= grace_seconds:
            os.kill(engine, signal.SIGKILL)
            return
        time.sleep(min(LOOK_SECONDS, grace_seconds))


def _has_hung_up(descriptor: int) -> bool:
    """Return whether the other end of a pipe or a socket was closed, even if data is left to be read."""
    look = select.poll()
    look.register(descriptor, select.POLLIN | _HANG_UP)
    return any(happened & _HANG_UP for _, happened in look.poll(0))


if __name__ == "__main__":
    watch(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
