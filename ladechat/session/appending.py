"""Files that grow line by line, as a conversation and a recording do: each line goes to the system whole."""

import os
import threading
from pathlib import Path

PRIVATE = 0o600
"""Its user alone may read and write such a file."""


def create(path: Path) -> int:
    """Create a file that is appended to and can be read back; return its descriptor.

    Raises:
        FileExistsError: there is one already.
        OSError: it cannot be created.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE)


def is_there(descriptor: int, path: Path) -> bool:
    """Return whether an open file still has its name: one that was removed takes lines that nobody will find."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def append_line(descriptor: int, line: bytes) -> None:
    """Write a line at the end of a file that can be read back; a last line without an end is ended first.

    Raises:
        OSError: it cannot be written.
    """
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    write_whole(descriptor, (b"\n" if torn else b"") + line)


def write_whole(descriptor: int, content: bytes) -> None:
    """Write all of this, however little of it the system takes at a time.

    Raises:
        OSError: it cannot be written.
    """
    while content:
        content = content[os.write(descriptor, content) :]


def sync_in_background(descriptor: int) -> None:
    """Flush to the disk in a thread: the screen does not wait for it."""
    threading.Thread(target=_sync, args=(os.dup(descriptor),), name="fsync").start()


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # a pipe, or a disk that is gone: the next line that is written says so
    finally:
        os.close(descriptor)
