"""The terminal outside of the app: control characters, streams that are closed or non-blocking, and an orderly exit."""

import io
import os
import re
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR = range(3)

VISIBLE_CONTROLS = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"},
    # These reverse the writing direction, and with it the meaning, or break lines invisibly.
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)},
}
"""Text from a model, a hub, a file or a command line is never written raw to a terminal, except for newlines and tabs.
"""

PAGE_DRIVER = "ladechat.serve.driver:PageDriver"
"""Textual's driver in a browser tab, as the variable TEXTUAL_DRIVER names it."""

PROGRESS_LINES = "LADECHAT_PROGRESS_LINES"
"""If set, progress is printed to stderr one line per update, for a parent process."""


def shown(text: str) -> str:
    """Return `text` with control characters made visible."""
    return text.translate(VISIBLE_CONTROLS)


def writable(text: str, encoding: str) -> str:
    """Return `text` as it will be written, for measuring: a question mark for each character the encoding lacks."""
    return text.encode(encoding, "replace").decode(encoding)


def say(sentence: str) -> None:
    """Print a line of the program's own on standard error; on standard output if standard error is closed."""
    print(f"ladechat: {shown(sentence)}", file=sys.stdout if STANDARD_ERROR in missing_streams() else sys.stderr)


def in_page() -> bool:
    """Return whether the app runs in a browser tab. Its standard streams are then pipes to the server."""
    return os.environ.get("TEXTUAL_DRIVER") == PAGE_DRIVER


def missing_streams() -> frozenset[int]:
    """Return which of the standard streams 0, 1 and 2 were closed at the start: Python has None in their place."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return frozenset(number for number, stream in enumerate(streams) if stream is None)


def forget_sizes_of_nothing() -> None:
    """Remove COLUMNS and LINES from the environment if invalid, such as 0, which some shells export for unknown sizes.

    Rich would write nothing at all on a terminal with no columns.
    """
    for name in ("COLUMNS", "LINES"):
        if not re.fullmatch("0*[1-9][0-9]{0,4}", os.environ.get(name, "1")):
            del os.environ[name]


def make_streams_safe() -> None:
    """Make the standard streams safe, so that every command can read all input and write all output.

    Closed streams are replaced by the null device: code does not check for them, and a file that is opened later would
    get the number of one, and with it what any library prints. Non-blocking streams are waited for. Characters that a
    stream's encoding lacks are written as question marks.
    """
    _replace_missing_streams()
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _waiting(stream))
            setattr(sys, f"__{name}__", getattr(sys, name))  # Textual draws on this one
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def forget_output() -> None:
    """Discard the remaining standard output, as it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class WaitingFile(io.FileIO):
    """An open file that is waited for, even if a process that shares it has made it non-blocking.

    Python's own file loses data at a full pipe, and fails at an empty one. Making the file blocking would affect the
    processes that share it, such as the terminal's shell.
    """

    def write(self, data: Any) -> int:
        """Write a part of the data, at least one byte, and return the number of bytes."""
        while (written := super().write(data)) is None:
            select.select([], [self], [])
        return written

    def readinto(self, buffer: Any) -> int:
        """Read at least one byte, and return the number of bytes; 0 at the end."""
        while (read := super().readinto(buffer)) is None:
            select.select([self], [], [])
        return read

    read = io.RawIOBase.read  # type: ignore[assignment]  # by readinto, as FileIO's is not
    readall = io.RawIOBase.readall


def _waiting(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a stream of the same file, encoding and buffering that waits for it."""
    stream.flush()
    reads = stream.readable()
    raw = WaitingFile(stream.fileno(), "r" if reads else "w", closefd=False)
    raw.name = stream.name
    return io.TextIOWrapper(
        io.BufferedReader(raw) if reads else io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering or stream.write_through,
    )


def _replace_missing_streams() -> None:
    for number in sorted(missing_streams()):
        while os.open(os.devnull, os.O_RDWR) < number:  # gets the lowest free number
            pass
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - a descriptor, for as long as the process
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - as above
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - as above


class Status:
    """A status line on a terminal's standard error, rewritten in place; lines for a parent process; else nothing."""

    def __init__(self) -> None:
        self._shown = False
        self._enabled = sys.stderr.isatty()
        self._lines = PROGRESS_LINES in os.environ
        self._last = ""

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._lines:
            if text != self._last:
                print(shown(text), file=sys.stderr, flush=True)
                self._last = text
        elif self._enabled:
            sys.stderr.write(f"\r\x1b[2K{shown(text)} …")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        """Clear the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = False


# --- when the terminal is closed, or the machine shuts down ----------------------------------------------------------

SECONDS_TO_LEAVE = 10.0
"""The time limit for the exit. Ending a frozen engine takes three seconds of it."""
SECONDS_TO_GIVE_UP = 1.0
"""The time limit for the last action: the terminal that it is for may be gone."""


def leave_on_signals(leave: Callable[[int], object], give_up: Callable[[], object] = lambda: None) -> None:
    """Make the running event loop call `leave` with the exit code (128 + signal number) on SIGHUP and SIGTERM.

    A loop that is busy, or blocked by a terminal that is gone, cannot call it: then `give_up` is called in a thread,
    and the process ends. The time limit counts from the signal. Signals can only be handled in the main thread; in
    others the system's default remains, the end of the process.
    """
    import asyncio  # only a program with an event loop calls this

    loop = asyncio.get_running_loop()

    def handle(number: int, _: object) -> None:
        code = 128 + number
        deadline = threading.Timer(SECONDS_TO_LEAVE, _end, (code, give_up))
        deadline.daemon = True
        deadline.start()
        try:
            loop.call_soon_threadsafe(leave, code)
        except RuntimeError:  # the loop has ended, and the program is about to
            sys.exit(code)

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, handle)


def _end(code: int, give_up: Callable[[], object]) -> None:
    giving_up = threading.Thread(target=give_up, daemon=True)
    giving_up.start()
    giving_up.join(SECONDS_TO_GIVE_UP)
    os._exit(code)
