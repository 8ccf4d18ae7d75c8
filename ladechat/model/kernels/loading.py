"""Loads the kernels' library, unless that has crashed twice in a row: once may be a power cut, or a kill."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ladechat.model.kernels.build import LOADING, Build, BuildError
from ladechat.model.kernels.library import Library

CRASHES = 2
"""The number of consecutive crashes after which a library is not loaded any more."""


class NotOurs(BuildError):
    """A file is not a library for this machine, or lacks our functions."""


def load_library(build: Build, threads: int) -> Library:
    """Return the kernels, after checking them against torch. An unusable file is built again, once.

    Args:
        build: the build of the library.
        threads: see `Library`.

    Raises:
        BuildError: it cannot be built, is no library, computes something else, or crashes; its folder cannot be written
            to, or files in it cannot be locked.
    """
    try:
        try:
            return _loaded(build.library(), threads)
        except NotOurs:
            return _loaded(build.rebuilt(), threads)
    except OSError as error:
        raise BuildError(f"The kernels cannot be loaded: {error}.") from error


def _loaded(path: Path, threads: int) -> Library:
    with crash_remembered(path):
        try:
            library = Library(path, threads)
        except (OSError, AttributeError) as error:  # AttributeError: a function is missing in it
            raise NotOurs(f"The C++ compiler has built another library than ours: {error}.") from error
        if not library.is_right():
            raise BuildError("The C++ compiler has built kernels that compute something else.")
    return library


@contextmanager
def crash_remembered(path: Path) -> Iterator[None]:
    """Add a line to a file while a library is being loaded, and clear it afterwards: a crash leaves the line.

    The file is locked meanwhile, so the lines in an unlocked one are of processes that have ended.

    Raises:
        BuildError: the last `CRASHES` processes crashed while they loaded the library.
        OSError: the file cannot be written.
    """
    with path.with_suffix(LOADING).open("a+", encoding="utf-8") as note:
        fcntl.flock(note, fcntl.LOCK_EX)  # another process that is loading it needs milliseconds
        note.seek(0)
        if len(note.readlines()) >= CRASHES:
            message = f"They have twice ended a program while they were loaded; to try again, remove {note.name}."
            raise BuildError(message)
        note.write("being loaded\n")
        note.flush()
        try:
            yield
        finally:
            note.truncate(0)
