"""Loads the library of the kernels, and no more where that has crashed twice: once may be a power cut, or a kill."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ladechat.model.kernels.build import LOADING, Build, BuildError
from ladechat.model.kernels.library import Library

CRASHES = 2
"""Processes ended one after another, after which a library is not loaded any more."""


class NotOurs(BuildError):
    """What a file holds is no library for this machine, or one without our functions."""


def load_library(build: Build, threads: int) -> Library:
    """The kernels, which compute here what torch computes. A file that is no such library is built anew, once.

    Args:
        build: what has built the library.
        threads: see `Library`.

    Raises:
        BuildError: it cannot be built, is no library, computes something else, or crashes; its folder cannot be written
            to, or no file in it locked.
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
    """Note in a file that a library is being loaded, and clear it afterwards: after a crash there is a line more in it.

    The file is locked meanwhile, so the lines in one without a lock are of processes that have ended.

    Raises:
        BuildError: the last `CRASHES` processes have ended while they loaded the library.
        OSError: the file cannot be written.
    """
    with path.with_suffix(LOADING).open("a+", encoding="utf-8") as note:
        fcntl.flock(note, fcntl.LOCK_EX)  # whoever loads it at this moment needs milliseconds
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
