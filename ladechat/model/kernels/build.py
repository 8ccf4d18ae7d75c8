"""Builds the library of the kernels: once for a machine, in the background, in seconds, by its C++ compiler."""

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from ladechat.private_folder import NotPrivate, private_folder, private_path

SOURCES = sorted(Path(__file__).with_name("csrc").iterdir())

FLAGS = ("-std=c++20", "-O3", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden", "-w")

LIBRARIES_KEPT = 4
"""Libraries in the cache folder; older ones are deleted."""

SECONDS_FOR_A_BUILD = 120.0

LOADING = ".loading"
"""The suffix of a file beside a library, which is not empty while that is loaded, nor after a crash meanwhile."""


class BuildError(Exception):
    """Why there is no library, in a sentence."""


class Build:
    """A library that can be built, is being built, or is there from an earlier build.

    Args:
        folder: where libraries are kept; by default a private one in the user's cache folder.
        processor: what it is built for, as the compiler calls it; "native" is this one.
    """

    def __init__(self, folder: Path | None = None, processor: str = "native") -> None:
        self._folder = folder or private_path("kernels")
        self._processor = processor
        self._error: BuildError | None = None
        self._path: Path | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin in the background, unless that was done: whoever will need it has something else to do meanwhile."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def library(self) -> Path:
        """The library. Waits until it is built.

        Raises:
            BuildError: it cannot be built here.
        """
        self.start()
        if self._thread is not None:
            self._thread.join()
        if self._path is None:
            raise self._error or BuildError("The build of the kernels has failed.")
        return self._path

    def rebuilt(self) -> Path:
        """The library, built anew: the one that was there is none.

        Raises:
            BuildError: it cannot be built here.
        """
        self.library().unlink(missing_ok=True)
        self._error = self._path = self._thread = None
        return self.library()

    def _run(self) -> None:
        try:
            self._path = built(private_folder(self._folder), self._processor)
        except BuildError as error:
            self._error = error
        except NotPrivate as error:
            self._error = BuildError(f"The kernels cannot be built: {error}")
        except OSError as error:
            self._error = BuildError(f"The kernels cannot be built: {error}.")


def compiler() -> str | None:
    """The C++ compiler of this machine: the one that CXX names, or the usual one; None if there is none."""
    return shutil.which(os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++"))


def built(folder: Path, processor: str = "native") -> Path:
    """The library for this machine, from the folder or built into it.

    Its name has two digests: of the sources, the compiler's command and the processor; and of its content, by which a
    file that is torn or was changed is known, and built anew.

    Args:
        folder: one that nobody else can write to, because what is in it is executed.
        processor: see `Build`.

    Raises:
        BuildError: there is no compiler, or it fails.
        OSError: the folder cannot be written to.
    """
    program = compiler()
    if program is None:
        raise BuildError("There is no C++ compiler (CXX may name one).")
    command = [program, *FLAGS, f"{'-mcpu' if sys.platform == 'darwin' else '-march'}={processor}"]
    content = b"\0".join(source.read_bytes() for source in SOURCES)
    about = repr((command, _processor() if processor == "native" else "", platform.machine(), content))
    key = _digest(about.encode())
    for library in folder.glob(f"{key}.*.so"):
        if library.name == f"{key}.{_digest(library.read_bytes())}.so":
            with contextlib.suppress(OSError):
                library.touch()  # so that it counts as used
            return library
        library.unlink(missing_ok=True)
    partial = folder / f"{key}.{os.getpid()}.{threading.get_ident()}.partial"
    try:
        _compile([*command, *(str(source) for source in SOURCES if source.suffix == ".cpp"), "-o", str(partial)])
        library = folder / f"{key}.{_digest(partial.read_bytes())}.so"
        partial.replace(library)  # atomic: another process finds a whole library or none
    finally:
        partial.unlink(missing_ok=True)
    _delete_old(folder)
    return library


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def _compile(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_FOR_A_BUILD)
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"The C++ compiler took longer than {SECONDS_FOR_A_BUILD:.0f} seconds.") from error
    if done.returncode < 0:
        raise BuildError(f"The C++ compiler was ended by signal {-done.returncode}.")
    if done.returncode:
        raise BuildError(f"The C++ compiler refused the kernels: {done.stderr.strip()}")


def _processor() -> str:
    """What the processor can do: code made for one may not run on another that shares a home folder."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _delete_old(folder: Path) -> None:
    """Delete libraries that were not used lately, and what an interrupted build has left."""
    with contextlib.suppress(OSError):
        by_age = sorted(folder.glob("*.so"), key=lambda path: path.stat().st_mtime, reverse=True)
        left_over = [path for path in folder.glob("*.partial") if time.time() - path.stat().st_mtime > 3600]
        for path in (*by_age[LIBRARIES_KEPT:], *left_over):
            path.unlink(missing_ok=True)
            path.with_suffix(LOADING).unlink(missing_ok=True)
