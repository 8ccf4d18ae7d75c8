"""Builds the library of the kernels: once for a machine, in the background, in seconds, by its C++ compiler."""

import contextlib
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import threading
import time
from pathlib import Path

from ladechat.private_folder import NotPrivate, executable_folder, private_folder

SOURCES = sorted(Path(__file__).with_name("csrc").iterdir())

FLAGS = ("-std=c++20", "-O3", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden", "-w")

COMPILERS = ("g++", "clang++", "c++")
"""Where CXX names none, the first of these that is there. On macOS each is clang."""

LIBRARIES_KEPT = 4
"""Libraries in the cache folder; older ones are deleted."""

SECONDS_FOR_A_BUILD = 120.0

LOADING = ".loading"
"""The suffix of a file beside a library, which is not empty while that is loaded, nor after a crash meanwhile."""


logger = logging.getLogger(__name__)


class BuildError(Exception):
    """Why there is no library, in a sentence."""


class Build:
    """A library that can be built, is being built, or is there from an earlier build.

    Args:
        folder: where libraries are kept; by default a private one of this user.
        processor: what it is built for, as the compiler calls it; "native" is this one.
    """

    def __init__(self, folder: Path | None = None, processor: str = "native") -> None:
        self._folder = folder
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
            folder = private_folder(self._folder) if self._folder else executable_folder("kernels")
            self._path = built(folder, self._processor)
        except BuildError as error:
            self._error = error
        except NotPrivate as error:
            self._error = BuildError(f"The kernels cannot be built: {error}")
        except OSError as error:
            self._error = BuildError(f"The kernels cannot be built: {error}.")


def compiler() -> list[str]:
    """Return the command of this machine's C++ compiler: the one in CXX, with its options, or the first usual one.

    Raises:
        BuildError: there is none.
    """
    named = os.environ.get("CXX", "").strip()
    for command in _commands(named) if named else [[name] for name in COMPILERS]:
        program = shutil.which(command[0])
        if program is not None and not _is_placeholder(program):
            return [program, *command[1:]]
    if named:
        raise BuildError(f"There is no C++ compiler {named}, which CXX names.")
    install = "xcode-select --install" if _is_macos() else "on Debian and Ubuntu: apt install g++"
    raise BuildError(f"There is no C++ compiler: install one ({install}), or name one in CXX.")


def _commands(named: str) -> list[list[str]]:
    """What CXX may mean: a program whose path has spaces in it, or one with its options, as in "ccache g++"."""
    with contextlib.suppress(ValueError):  # a quotation mark that is not closed
        return [[named], shlex.split(named)]
    return [[named]]


def _is_placeholder(program: str) -> bool:
    """Whether a program of macOS only offers to install the compiler, in a window of its own."""
    if not _is_macos() or not program.startswith("/usr/bin/"):
        return False
    return subprocess.run(["xcode-select", "-p"], capture_output=True).returncode != 0


def _is_macos() -> bool:
    return platform.system() == "Darwin"


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
    # Older versions of clang know only the first for ARM.
    architecture = "-mcpu" if platform.machine() in ("arm64", "aarch64") else "-march"
    command = [*compiler(), *FLAGS, f"{architecture}={processor}"]
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
        logger.warning("The C++ compiler: %s", done.stderr.strip())
        lines = done.stderr.strip().splitlines() or [f"it ended with exit status {done.returncode}"]
        reason = next((line for line in lines if "error" in line), lines[0])
        raise BuildError(f"The C++ compiler {command[0]} refused the kernels: {reason.strip()}")


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
