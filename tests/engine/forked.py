"""An engine in a process of its own that begins as a copy of this one, which has imported torch already.

It is what `ladechat engine` is from `serve` on, over real pipes, with real signals and a real end. How a process comes
to `serve` (its command line, its imports, the folder that it is started in) is for `tests.engine.wire.Wire`.
"""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import patch

import torch

from ladechat.engine import server
from ladechat.engine_options import EngineOptions
from ladechat.model.checkpoint import template
from ladechat.model.parallel import workers
from ladechat.protocol import Settings
from tests.engine.wire import ProcessLine

MOST_DESCRIPTORS = 4096
"""More than a process of the tests has open."""


class Child:
    """A copy of this process that runs a function and ends with what that returns, as the exit code.

    Args:
        run: the function.
        stdin, stdout, stderr: its standard streams.
    """

    def __init__(self, run: Callable[[], int | None], stdin: int, stdout: int, stderr: int) -> None:
        self.pid = os.fork()
        self._exit_code: int | None = None
        if self.pid == 0:
            _become(run, (stdin, stdout, stderr))

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, when the process has ended; of a signal, minus its number."""
        if self._exit_code is None:
            _, status = os.waitpid(self.pid, 0)
            self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code

    def send_signal(self, number: int) -> None:
        """Send the process a signal, unless it has ended."""
        if self._exit_code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self.send_signal(signal.SIGKILL)


class Forked(ProcessLine):
    """An engine from `serve` on, for a model on a CPU. A worker that it starts is a copy of it in turn.

    Args:
        model, dtype, settings, options: of `EngineOptions`.
    """

    def __init__(self, model: str, dtype: str, settings: Settings, **options: Any) -> None:
        from_here, commands = os.pipe()
        events, to_here = os.pipe()
        log, its_log = os.pipe()

        def run() -> int:
            with (
                patch.object(workers, "subprocess", SimpleNamespace(Popen=forked_worker)),
                patch.object(server, "collect_rarely", lambda: None),
                patch.object(template, "_renderer", template._Renderer()),  # the parent's answers the parent
            ):
                return server.serve(EngineOptions(model, "cpu", dtype, settings=settings, **options))

        process = Child(run, from_here, to_here, its_log)
        for end in (from_here, to_here, its_log):
            os.close(end)
        super().__init__(process, os.fdopen(commands, "wb"), os.fdopen(events, "rb"), os.fdopen(log, "rb"))


def forked_worker(command: Sequence[str], stdin: int, stdout: int) -> Child:
    """Start the program of a worker as a copy of this process."""
    assert command[1:] == ["-P", "-m", workers.__name__]
    return Child(workers.main, stdin, stdout, stdout)


def _become(run: Callable[[], int | None], streams: tuple[int, int, int]) -> NoReturn:
    """Go on as a process that has nothing of its parent but what it has imported."""
    try:
        gc.freeze()  # files of the parent are not closed here: their numbers are given to others
        for number, stream in enumerate([os.dup(stream) for stream in streams]):
            os.dup2(stream, number)
        os.closerange(3, MOST_DESCRIPTORS)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, 1, closefd=False) for number, mode in enumerate("rww")
        )
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        torch.set_num_threads(1)  # the parent's other threads are not here
        os.environ["OMP_NUM_THREADS"] = "1"
        os._exit(run() or 0)
    except BaseException:  # its frames are those of a test of the parent, which nothing must go on with
        os.write(2, traceback.format_exc().encode())
        os._exit(1)
