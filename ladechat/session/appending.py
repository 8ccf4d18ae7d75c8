"""Append-only files of lines, such as conversations and recordings: each line is written as a whole."""

import os
import threading
from pathlib import Path

PRIVATE = 0o600
"""Only the owner may read and write such a file."""


def create(path: Path) -> int:
    """Create a file that can be appended to and read back; return its descriptor.

    Raises:
        FileExistsError: the file exists already.
        OSError: it cannot be created.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE)


def is_there(descriptor: int, path: Path) -> bool:
    """Return whether an open file still has its name: lines appended to a removed file are lost."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def append_line(descriptor: int, line: bytes) -> None:
    """Append a line to a file that can be read back; an incomplete last line is ended first.

    Raises:
        OSError: it cannot be written.
    """
    size = os.fstat(descriptor).st_size
    torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    write_whole(descriptor, (b"\n" if torn else b"") + line)


def write_whole(descriptor: int, content: bytes) -> None:
    """Write all of `content`, also where the system writes only a part of it per call.

    Raises:
        OSError: it cannot be written.
    """
    while content:
        content = content[os.write(descriptor, content) :]


def sync_in_background(descriptor: int) -> None:
    """Flush a file to the disk in a thread, so that the UI does not wait for it."""
    threading.Thread(target=_sync, args=(os.dup(descriptor),), name="fsync").start()


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # a pipe, or a disk that is gone: writing the next line reports it
    finally:
        os.close(descriptor)
