"""A pseudo terminal: it types, waits for what is shown, and counts frames.

The program has it as its controlling terminal. So it is told to leave when the terminal is closed, which the system
does however the measurement ends.
"""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

COLUMNS, ROWS = 140, 45
DEADLINE_SECONDS = 120
SECONDS_TO_SETTLE = 60
SECONDS_TO_LEAVE = 15
QUIT = b"\x11"
ESCAPES = re.compile(rb"\x1b(?:\[[0-9;:?<=>$]*[A-Za-z]|[PX^_\]][^\x07\x1b]*(?:\x07|\x1b\\)|.)")
WHICH_UPDATES, UPDATES_REPORTED = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
"""The question whether a terminal shows an update whole (synchronized output), and our answer: yes, as most do."""
END_OF_UPDATE = b"\x1b[?2026l"
MOST_BYTES = 1 << 15
LEAST_FRAME_BYTES = 500
"""A smaller update is that of a blinking cursor, of a key in the prompt, or of a clock."""


class Terminal:
    """A program on a terminal of its own.

    Args:
        command: the program.
        environment: all of its environment but TERM and COLORTERM.
        size: columns and rows.
    """

    def __init__(
        self, command: Sequence[str], environment: dict[str, str], size: tuple[int, int] = (COLUMNS, ROWS)
    ) -> None:
        columns, rows = size
        self._outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._process = subprocess.Popen(
            command,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(inner)

    @property
    def process(self) -> int:
        """Its process id."""
        return self._process.pid

    def type(self, keys: str | bytes) -> None:
        """Type keys."""
        os.write(self._outer, keys.encode() if isinstance(keys, str) else keys)

    def wait(self, shown: Callable[[bytes], bool], seconds: float = DEADLINE_SECONDS) -> float:
        """Seconds until `shown` is true of what has been written since the call, or of the latest part of that.

        Raises:
            TimeoutError: it was not, for so many seconds.
        """
        began = time.perf_counter()
        written = b""
        while not shown(written):
            part = self._read(began + seconds - time.perf_counter())
            if not part:
                raise TimeoutError(f"not shown after {seconds:.0f} s; the last output: {written[-300:]!r}")
            written = written[-MOST_BYTES:] + part
        return time.perf_counter() - began

    def wait_for(self, shown: str) -> float:
        """Seconds until this text has been written; as `wait`."""
        return self.wait(lambda written: shown in text(written))

    def listen(self, seconds: float) -> bytes:
        """All that is written in so many seconds."""
        ends = time.perf_counter() + seconds
        written = b""
        while part := self._read(ends - time.perf_counter()):
            written += part
        return written

    def settle(self, seconds: float = 0.5) -> None:
        """Wait until no frame has been written for so long.

        Raises:
            TimeoutError: frames went on.
        """
        ends = time.perf_counter() + SECONDS_TO_SETTLE
        while frames(self.listen(seconds)):
            if time.perf_counter() > ends:
                raise TimeoutError(f"the screen was still changing after {SECONDS_TO_SETTLE} s")

    def cpu_seconds(self) -> float:
        """What the program has used of a core until now, without its children (Linux alone tells)."""
        return cpu_seconds(self.process)

    def close(self) -> None:
        """Leave the program, which ends its engine too; kill one that does not leave."""
        ends = time.perf_counter() + SECONDS_TO_LEAVE
        try:
            self.type(QUIT)
            while self._process.poll() is None and time.perf_counter() < ends:
                self.listen(0.1)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._outer)

    def _read(self, seconds: float) -> bytes:
        """What is written next; nothing if nothing is, or if the program has ended."""
        if seconds <= 0 or not select.select([self._outer], [], [], seconds)[0]:
            return b""
        try:
            part = os.read(self._outer, 1 << 16)
        except OSError:  # it has closed the terminal
            return b""
        if WHICH_UPDATES in part:
            self.type(UPDATES_REPORTED)
        return part


def _take_terminal() -> None:
    """In the program's process: make the terminal on its standard input the one that it belongs to."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def cpu_seconds(process: int) -> float:
    """What a process has used of a core until now (Linux alone tells)."""
    user, system = _stat(process)[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def children_of(process: int) -> list[int]:
    """The processes that a process has started, and those that they have, as far as they run."""
    lists = Path(f"/proc/{process}/task").glob("*/children")
    children = [int(child) for each in lists for child in each.read_text(encoding="ascii").split()]
    return [*children, *(each for child in children for each in children_of(child))]


def _stat(process: int) -> list[str]:
    """The fields of a process from its state on."""
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def frames(written: bytes) -> int:
    """How many frames were written: updates that a terminal shows whole, without those of a few cells."""
    *updates, _unfinished = written.split(END_OF_UPDATE)
    return sum(len(update) >= LEAST_FRAME_BYTES for update in updates)


def text(written: bytes) -> str:
    """What was written, without escape sequences."""
    return ESCAPES.sub(b"", written).decode(errors="replace")
