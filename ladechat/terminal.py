"""What is written on a terminal outside of the app: text that steers nothing; and standard streams that are closed, or
that do not wait.
"""

import io
import os
import re
import select
import sys
from typing import Any

STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR = range(3)

VISIBLE_CONTROLS = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"},
    # What turns the direction of writing around, and with it the meaning, and what breaks lines out of sight.
    **{code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)},
}
"""Text of a model, a hub, a file or a command line never reaches a terminal raw, except for line ends and tabs."""

PAGE_DRIVER = "ladechat.serve.driver:PageDriver"
"""What Textual draws with in a browser tab, as its variable TEXTUAL_DRIVER names it."""

PROGRESS_LINES = "LADECHAT_PROGRESS_LINES"
"""If set, progress is printed to stderr one line per update, for a parent process."""


def shown(text: str) -> str:
    """`text` with what would steer a terminal made visible."""
    return text.translate(VISIBLE_CONTROLS)


def writable(text: str, encoding: str) -> str:
    """Return `text` with a question mark for each character that the encoding has not, to be measured as written."""
    return text.encode(encoding, "replace").decode(encoding)


def say(sentence: str) -> None:
    """Print a line of the program's on standard error; on standard output where the shell has closed that."""
    print(f"ladechat: {shown(sentence)}", file=sys.stdout if STANDARD_ERROR in missing_streams() else sys.stderr)


def in_page() -> bool:
    """Is this the app of a browser tab? Its standard streams are pipes to the server then."""
    return os.environ.get("TEXTUAL_DRIVER") == PAGE_DRIVER


def missing_streams() -> frozenset[int]:
    """Which of the standard streams, 0, 1 and 2, were closed when the program began: Python has none in their place."""
    streams = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    return frozenset(number for number, stream in enumerate(streams) if stream is None)


def forget_sizes_of_nothing() -> None:
    """Forget COLUMNS and LINES that name no size, such as 0, which some shells export where they know none.

    Rich would write nothing at all on a terminal of no columns.
    """
    for name in ("COLUMNS", "LINES"):
        if not re.fullmatch("0*[1-9][0-9]{0,4}", os.environ.get(name, "1")):
            del os.environ[name]


def make_streams_safe() -> None:
    """Make standard streams so that every command can read all that comes, and write all that it has to say.

    A null device takes the place of those that are closed. Nobody looks whether there are any; and a file that is
    opened later would get the number of one, and with it what any library prints. Those that do not block are waited
    for. What the encoding of a terminal or a pipe has no character for is written as a question mark.
    """
    _replace_missing_streams()
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _waiting(stream))
            setattr(sys, f"__{name}__", getattr(sys, name))  # what Textual draws on
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def forget_output() -> None:
    """Let what is still to be written on standard output go nowhere: it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class WaitingFile(io.FileIO):
    """An open file that is waited for, also where whoever shares it has said that it shall not block.

    Python's own loses what a full pipe does not take, and fails at an empty one. To make the file block would be seen
    by those who share it, such as the shell of a terminal.
    """

    def write(self, data: Any) -> int:
        """Write a part of the data, at least one byte, and return how many."""
        while (written := super().write(data)) is None:
            select.select([], [self], [])
        return written

    def readinto(self, buffer: Any) -> int:
        """Read at least one byte, and return how many; 0 at the end."""
        while (read := super().readinto(buffer)) is None:
            select.select([self], [], [])
        return read

    read = io.RawIOBase.read  # type: ignore[assignment]  # by readinto, as FileIO's is not
    readall = io.RawIOBase.readall


def _waiting(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a stream of the same file, encoding and buffering that is waited for."""
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
        while os.open(os.devnull, os.O_RDWR) < number:  # the lowest number that is free
            pass
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115 - a descriptor, for as long as the process
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - as above
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - as above
