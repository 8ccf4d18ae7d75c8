"""Files that are written whole or not at all, and read only where they are files."""

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path


def read_file(path: Path) -> bytes:
    """Return what a file holds. A named pipe is not waited for, and a device, which may have no end, is not read.

    Raises:
        OSError: it cannot be read, or is no file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is a named pipe or a device, not a file")
        return file.read()


def replace_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file anew by way of one beside it.

    Args:
        path: of the file; its folder is made if there is none.
        content: all that it is to hold.
        mode: who may read and write it.

    Raises:
        OSError: it cannot be written; what was there is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(prefix=f".{path.name}.partial-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).chmod(mode)
        Path(partial).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(partial).unlink()
        raise
