"""Builds the library of the kernels: once for a machine, in the background, in seconds, by its C++ compiler.

It knows nothing of torch, so an engine starts the build before it imports torch and loads a model meanwhile.
"""

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

from platformdirs import user_cache_path

SOURCES = sorted(Path(__file__).with_name("csrc").iterdir())

FLAGS = ("-std=c++20", "-O3", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden", "-w")

LIBRARIES_KEPT = 4
"""Libraries in the cache folder; older ones are deleted."""

SECONDS_FOR_A_BUILD = 120.0


class BuildError(Exception):
    """Why there is no library, in a sentence."""


class Build:
    """A library that is being built, or is there from an earlier build.

    Args:
        folder: where libraries are kept; by default in the user's cache folder.
        processor: what it is built for, as the compiler calls it; "native" is this one.
    """

    def __init__(self, folder: Path | None = None, processor: str = "native") -> None:
        self._folder = folder or user_cache_path("ladechat") / "kernels"
        self._error: BuildError | None = None
        self._path: Path | None = None
        self._thread = threading.Thread(target=self._run, args=[processor], daemon=True)
        self._thread.start()

    def library(self) -> Path:
        """The library. Waits until it is built.

        Raises:
            BuildError: it cannot be built here.
        """
        self._thread.join()
        if self._path is None:
            raise self._error or BuildError("The build of the kernels has failed.")
        return self._path

    def _run(self, processor: str) -> None:
        try:
            self._path = built(self._folder, processor)
        except BuildError as error:
            self._error = error
        except OSError as error:
            self._error = BuildError(f"The kernels cannot be built: {error}.")


def compiler() -> str | None:
    """The C++ compiler of this machine: the one that CXX names, or the usual one; None if there is none."""
    return shutil.which(os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++"))


def built(folder: Path, processor: str = "native") -> Path:
    """The library for this machine, from the folder or built into it.

    Its name has a digest of the sources, the compiler's command and the processor.

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
    library = folder / f"{hashlib.blake2b(about.encode(), digest_size=12).hexdigest()}.so"
    if library.exists():
        with contextlib.suppress(OSError):
            library.touch()  # so that it counts as used
        return library
    folder.mkdir(parents=True, exist_ok=True)
    partial = library.with_suffix(f".{os.getpid()}.{threading.get_ident()}.partial")
    try:
        _compile([*command, *(str(source) for source in SOURCES if source.suffix == ".cpp"), "-o", str(partial)])
        partial.replace(library)  # atomic: another process finds a whole library or none
    finally:
        partial.unlink(missing_ok=True)
    _delete_old(folder)
    return library


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
