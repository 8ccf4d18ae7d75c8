"""Builds the kernels' library with the C++ compiler of the machine: once, in the background, in seconds."""

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
"""The compilers tried where CXX names none. On macOS each is clang."""

MOST_LIBRARIES = 4
"""The most libraries in the cache folder; older ones are deleted."""

SECONDS_FOR_A_BUILD = 600.0

LOADING = ".loading"
"""The suffix of a file beside a library that is not empty while the library is being loaded, and after a crash."""

logger = logging.getLogger(__name__)


class BuildError(Exception):
    """There is no library; the message is the reason, as a sentence."""


class Build:
    """The build of a library: not started, running, or finished, perhaps earlier.

    Args:
        folder: the cache folder of libraries; by default a private one of this user.
        processor: the compiler's name of the target processor; "native" is this one.
    """

    def __init__(self, folder: Path | None = None, processor: str = "native") -> None:
        self._folder = folder
        self._processor = processor
        self._error: BuildError | None = None
        self._path: Path | None = None
        self._thread: threading.Thread | None = None

    def find(self) -> None:
        """Take a library that was built before, if there is one; nothing is built."""
        with contextlib.suppress(BuildError, NotPrivate, OSError):
            _, key = _command_and_key(self._processor)
            self._path = found(self._where(), key)

    def start(self) -> None:
        """Start the build in the background, unless it was started before, or a library was found."""
        if self._thread is None and self._path is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether `library` does not wait."""
        return self._path is not None or (self._thread is not None and not self._thread.is_alive())

    def library(self) -> Path:
        """Return the path of the library. Waits until it is built.

        Raises:
            BuildError: it cannot be built on this machine.
        """
        self.start()
        if self._thread is not None:
            self._thread.join()
        if self._path is None:
            raise self._error or BuildError("The build of the kernels has failed.")
        return self._path

    def rebuilt(self) -> Path:
        """Delete the library, which turned out to be unusable, build it again and return its path as `library` does."""
        self.library().unlink(missing_ok=True)
        self._error = self._path = self._thread = None
        return self.library()

    def _run(self) -> None:
        try:
            self._path = built(self._where(), self._processor)
        except BuildError as error:
            self._error = error
        except (NotPrivate, OSError) as error:
            self._error = BuildError(f"The kernels cannot be built: {str(error).removesuffix('.')}.")

    def _where(self) -> Path:
        return private_folder(self._folder) if self._folder else executable_folder("kernels")


def compiler() -> list[str]:
    """Return the command of this machine's C++ compiler: the one in CXX, with its options, or the first of
    `COMPILERS`.

    Raises:
        BuildError: there is none.
    """
    named = os.environ.get("CXX", "").strip()
    commands = [[named]] if named else [[name] for name in COMPILERS]
    with contextlib.suppress(ValueError):  # an unclosed quotation mark
        commands += [shlex.split(named)] if named else []  # a program with options, as in "ccache g++"
    for command in commands:
        program = shutil.which(command[0])
        if program is not None and not _is_placeholder(program):
            return [program, *command[1:]]
    if named:
        raise BuildError(f"There is no C++ compiler {named}, which CXX names.")
    install = "xcode-select --install" if _is_macos() else "on Debian and Ubuntu: apt install g++"
    raise BuildError(f"There is no C++ compiler: install one ({install}), or name one in CXX.")


def _is_placeholder(program: str) -> bool:
    """Return whether a program is macOS's placeholder, which only offers to install the compiler in a window."""
    apples = _is_macos() and program.startswith("/usr/bin/")
    return apples and subprocess.run(["xcode-select", "-p"], capture_output=True).returncode != 0


def _is_macos() -> bool:
    return platform.system() == "Darwin"


def built(folder: Path, processor: str = "native") -> Path:
    """Return the library for this machine, from the folder or built into it.

    Its name has two digests: of the sources, the compiler's command and the processor; and of its content, by which an
    incomplete or changed file is recognised, and built again. Only this user may be able to write to the folder,
    because its content is executed.

    Raises:
        BuildError: there is no compiler, or it fails.
        OSError: the folder cannot be written to.
    """
    command, key = _command_and_key(processor)
    library = found(folder, key)
    if library is not None:
        return library
    partial = folder / f"{key}.{os.getpid()}.{threading.get_ident()}.partial"
    try:
        _compile([*command, *(str(source) for source in SOURCES if source.suffix == ".cpp"), "-o", str(partial)])
        library = folder / f"{key}.{_digest(partial.read_bytes())}.so"
        partial.replace(library)  # atomic: another process finds a whole library or none
    finally:
        partial.unlink(missing_ok=True)
    _delete_old(folder)
    return library


def found(folder: Path, key: str) -> Path | None:
    """Return the whole library in the folder whose name begins with a key; None if there is none."""
    for library in folder.glob(f"{key}.*.so"):
        if library.name == f"{key}.{_digest(library.read_bytes())}.so":
            with contextlib.suppress(OSError):
                library.touch()  # so that it counts as used
            return library
        library.unlink(missing_ok=True)
    return None


def _command_and_key(processor: str) -> tuple[list[str], str]:
    """Return the compiler's command, without files, and the digest of all that the library depends on."""
    # Older versions of clang support only -mcpu for ARM.
    architecture = "-mcpu" if platform.machine() in ("arm64", "aarch64") else "-march"
    command = [*compiler(), *FLAGS, f"{architecture}={processor}"]
    content = b"\0".join(source.read_bytes() for source in SOURCES)
    about = repr((command, _processor() if processor == "native" else "", platform.machine(), content))
    return command, _digest(about.encode())


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
    """Return the processor's features: code built for one may not run on another that shares the home folder."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _delete_old(folder: Path) -> None:
    """Delete libraries that were not used recently, and files left over from interrupted builds."""
    with contextlib.suppress(OSError):
        by_age = sorted(folder.glob("*.so"), key=lambda path: path.stat().st_mtime, reverse=True)
        left_over = [path for path in folder.glob("*.partial") if time.time() - path.stat().st_mtime > 3600]
        for path in (*by_age[MOST_LIBRARIES:], *left_over):
            path.unlink(missing_ok=True)
            path.with_suffix(LOADING).unlink(missing_ok=True)
