"""Files that are written whole or not at all, and read only where they are files; what was saved, read in one way."""

import contextlib
import errno
import os
import shlex
import stat
import tempfile
from collections.abc import Callable
from io import BufferedReader
from itertools import count
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")

MOST_BYTES = 64 * 1024 * 1024
"""Of a file that ladechat saves for itself: what is larger is something else."""
DAMAGE = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""What is raised where JSON makes no sense: bytes that are no text, nesting without end, a number of 400 digits."""
NO_FILE = (errno.EINVAL, errno.EISDIR, errno.ENXIO, errno.ELOOP, errno.EFBIG)
"""What `read_file` raises where something else is in the place of a file: a pipe, a folder, a loop of links."""


def read_file(path: Path, most: int | None = None) -> bytes:
    """Return what a file holds. A named pipe is not waited for, and a device, which may have no end, is not read.

    Args:
        path: of the file.
        most: the bytes that it may have; None: any number.

    Raises:
        OSError: it cannot be read, is no file, or is larger.
    """
    with open_file(path) as file:
        if most is not None and os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most // 1024:,} KiB")
        return file.read()


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return what matches a pattern in a folder: nothing where the folder is not there or may not be searched."""
    try:
        return list(folder.glob(pattern))
    except OSError:
        return []


def why_unread(folder: Path) -> str:
    """Return why it is not known what is in a folder, in a sentence; "" where it can be searched, or is not there."""
    try:
        with os.scandir(folder):
            return ""
    except (FileNotFoundError, ValueError):
        return ""
    except OSError as error:
        return cannot_be_read(folder, error)


def cannot_be_read(path: Path, error: OSError) -> str:
    """Return in a sentence that a saved file or its folder cannot be read, why, and what to do."""
    if isinstance(error, PermissionError):
        return f"{path} cannot be read: {error.strerror}. Allow it: chmod -R u+rwX {shlex.quote(str(path))}"
    return f"{path} cannot be read: {error.strerror or error}. Move away what is there."


def seen(path: Path, kind: Callable[[Path], bool] = Path.exists) -> bool:
    """Return whether something of a kind is there: not where that may not be looked at, or is no path at all."""
    try:
        return kind(path)
    except (OSError, ValueError):
        return False


def open_file(path: Path) -> BufferedReader:
    """Open a file to read it. A named pipe is not waited for, and a device, which may have no end, is refused.

    Raises:
        OSError: it cannot be read, or is no file.
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
    """Read what ladechat saved for a later session. A damaged file is set aside under another name, so that a new one
    takes its place and nothing is lost.

    Args:
        path: of the file.
        understand: makes a value of its bytes; whatever it raises, they make no sense.
        most: the bytes that it may have.

    Returns:
        The value, and what is wrong with the file, in a sentence. None and "" where there is no file.
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
        except Exception:  # a damaged file may make any reader raise anything
            what = "is damaged"
    try:
        aside = _set_aside(path)
    except OSError as error:
        return None, f"{path} {what}, and cannot be renamed: {error.strerror or error}. It is left as it is."
    return None, f"{path} {what}: it is called {aside.name} now, and a new one is begun."


def _set_aside(path: Path) -> Path:
    """Rename a file, a link or a folder, to a name that nothing has yet."""
    names = (path.with_name(f"{path.name}.damaged{f'-{number}' if number > 1 else ''}") for number in count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    return path.rename(aside)


def replace_file(path: Path, content: bytes, mode: int = 0o644, *, make_folder: bool = True) -> None:
    """Write a file anew by way of one beside it. A link stays one: the file is the one that it leads to.

    Args:
        path: of the file.
        content: all that it is to hold.
        mode: who may read and write it.
        make_folder: whether its folder is made if there is none.

    Raises:
        OSError: it cannot be written; what was there is untouched.
    """
    path = _behind_links(path)
    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = _begin_beside(path)
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
    """Look whether `replace_file` could write a file whose folder is there, and leave things as they were.

    Raises:
        OSError: it could not, or what is there is no file.
    """
    path = _behind_links(path)
    with contextlib.suppress(FileNotFoundError):
        _check_is_a_file(path.stat())
    descriptor, partial = _begin_beside(path)
    os.close(descriptor)
    Path(partial).unlink()


def _behind_links(path: Path) -> Path:
    """Where a link leads, also if there is nothing yet; else the path itself.

    Raises:
        OSError: it leads back to itself.
    """
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


def _begin_beside(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(prefix=f".{path.name}.partial-", dir=path.parent)
