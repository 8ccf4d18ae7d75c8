"""Files: written whole or not at all, appended to in whole lines, read only if they are regular files, and saved data
read in one way.
"""

import contextlib
import errno
import os
import shlex
import stat
import tempfile
import threading
from collections.abc import Callable
from io import BufferedReader
from itertools import count
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")

MOST_BYTES = 64 * 1024 * 1024
"""The largest saved file that is read, in bytes: larger ones are not ladechat's."""
DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""The errors of invalid JSON: bytes that are no text, endless nesting, a number of 400 digits."""
NO_FILE = (errno.EINVAL, errno.EISDIR, errno.ENXIO, errno.ELOOP, errno.EFBIG)
"""The errors of `read_file` for anything other than a regular file: a pipe, a folder, a loop of links."""

PRIVATE = 0o600
"""Only the owner may read and write a file of these permissions."""


def read_file(path: Path, most: int | None = None) -> bytes:
    """Return the content of a file. A named pipe is not waited for, and a device, which may be endless, is not read.

    Raises:
        OSError: it cannot be read, is not a regular file, or has more than `most` bytes.
    """
    with open_file(path) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most // 1024:,} KiB")
        return file.read()


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the matches of a pattern in a folder: none if the folder does not exist or cannot be searched."""
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def why_unread(folder: Path) -> str:
    """Return why the content of a folder is unknown, in a sentence; "" if it can be searched, or does not exist."""
    try:
        with os.scandir(folder):
            return ""
    except (FileNotFoundError, ValueError):
        return ""
    except OSError as error:
        return cannot_be_read(folder, error)


def cannot_be_read(path: Path, error: OSError) -> str:
    """Return a sentence that a saved file or its folder cannot be read, with the reason and what to do."""
    if isinstance(error, PermissionError):
        return f"{path} cannot be read: {error.strerror}. Allow it: chmod -R u+rwX {shlex.quote(str(path))}"
    return f"{path} cannot be read: {error.strerror or error}. Move away what is there."


def seen(path: Path, kind: Callable[[Path], bool] = Path.exists) -> bool:
    """Return whether a path exists and is of a kind; False if it may not be accessed, or is not a valid path."""
    try:
        return kind(path)
    except (OSError, ValueError):
        return False


def open_file(path: Path) -> BufferedReader:
    """Open a file for reading. A named pipe is not waited for, and a device, which may be endless, is refused.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _check_is_a_file(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check_is_a_file(about: os.stat_result) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "it is a named pipe or a device, not a file")


def read_saved(path: Path, understand: Callable[[bytes], Value], most: int = MOST_BYTES) -> tuple[Value | None, str]:
    """Read what ladechat saved for a later session, up to `most` bytes. A damaged file, for which `understand` raises
    anything, is renamed, so that a new one replaces it and nothing is lost.

    Returns:
        The value, and what is wrong with the file, in a sentence. None and "" if there is no file.
    """
    try:
        content = read_file(path, most)
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except OSError as error:
        if error.errno not in NO_FILE:
            return None, f"{path} cannot be read: {error.strerror or error}. It is left as it is."
        what = "is not a file that ladechat wrote"
    else:
        try:
            return understand(content), ""
        except MemoryError:
            raise
        except Exception:  # any parser may raise anything for a damaged file
            what = "is damaged"
    try:
        aside = _set_aside(path)
    except OSError as error:
        return None, f"{path} {what}, and cannot be renamed: {error.strerror or error}. It is left as it is."
    return None, f"{path} {what}: it is called {aside.name} now, and a new one is begun."


def _set_aside(path: Path) -> Path:
    """Rename a file, a link or a folder to a name that is not in use."""
    names = (path.with_name(f"{path.name}.damaged{f'-{number}' if number > 1 else ''}") for number in count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    return path.rename(aside)


def replace_file(path: Path, content: bytes, mode: int = 0o644, *, make_folder: bool = True) -> None:
    """Replace a file atomically, by way of a temporary file in its folder, which is created if it does not exist and
    `make_folder` says so. A link stays: its target is replaced.

    Raises:
        OSError: it cannot be written; the old file is unchanged.
    """
    path = _link_target(path)
    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = _begin_partial(path)
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


def check_replaceable(path: Path) -> None:
    """Check whether `replace_file` could write a file in an existing folder, without changing anything.

    Raises:
        OSError: it could not, or the path is not a regular file.
    """
    path = _link_target(path)
    with contextlib.suppress(FileNotFoundError):
        _check_is_a_file(path.stat())
    descriptor, partial = _begin_partial(path)
    os.close(descriptor)
    Path(partial).unlink()


def _link_target(path: Path) -> Path:
    """Return the target of a link, even if it does not exist; else the path itself.

    Raises:
        OSError: the link is circular.
    """
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


def _begin_partial(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(prefix=f".{path.name}.partial-", dir=path.parent)


# --- files to which lines are appended --------------------------------------------------------------------------------


def create_private(path: Path) -> int:
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
