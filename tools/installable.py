"""Says why the packages of constraints.txt cannot be installed for the Python that runs this; exit status 1 if so.

tools/setup_venv.sh asks each Python that it finds, before anything is downloaded. So this runs on Python 3.6 too.
"""

import importlib.util
import os
import platform
import struct
import sys

OLDEST, NEWEST = (3, 11), (3, 14)
"""The Python versions that all pinned packages have wheels for, on every system below."""

GLIBC = (2, 28)
"""The oldest one that the wheels of torch are made for."""

CHOOSE = "Install Python 3.11 to 3.14, or name the one to use, as in 'make run PYTHON=python3.12'."


def why_not(system: str, machine: str, libc: str, python: str, interpreter: str = "cpython") -> str:
    """Return why the pinned packages have no wheels for a machine and a Python, in a sentence; "" where they have.

    Args:
        system: "Linux", "Darwin" or another, as `platform.system` names it.
        machine: its processor, such as "x86_64" or "arm64".
        libc: "glibc 2.36"; "" where it is another one.
        python: the version, such as "3.12.1".
        interpreter: "cpython"; "pypy", "cpython without GIL", "cpython of 32 bits" are others.
    """
    if not OLDEST <= _numbers(python) <= NEWEST:
        return f"it is Python {python}. {CHOOSE}"
    if interpreter != "cpython":
        return f"it is {interpreter}, and the packages are made for the usual CPython. {CHOOSE}"
    if system == "Darwin":
        if machine == "arm64":
            return ""
        return (
            "it is made for Intel Macs, and PyTorch no longer is. On a Mac with Apple silicon, take a Python"
            " that is made for it."
        )
    if system != "Linux":
        return f"this is {system}, and ladechat runs on Linux and macOS; on Windows, in WSL (wsl --install)."
    if machine not in ("x86_64", "aarch64"):
        return f"this machine is {machine}, and PyTorch is made for x86_64 and aarch64."
    if not libc.startswith("glibc "):
        return "this system has another C library than glibc (musl, as Alpine has?), and PyTorch is made for glibc."
    if _numbers(libc.split()[1]) < GLIBC:
        return f"this system has {libc}, and PyTorch is made for {_dotted(GLIBC)} and newer: a newer Linux is needed."
    return ""


def _numbers(version: str) -> "tuple[int, int]":
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _dotted(version: "tuple[int, int]") -> str:
    return f"{version[0]}.{version[1]}"


def _libc() -> str:
    """The C library, where it names itself as glibc does."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        return ""


def _interpreter() -> str:
    if hasattr(sys, "_is_gil_enabled") and "t" in getattr(sys, "abiflags", ""):
        return "cpython without GIL"
    return sys.implementation.name if struct.calcsize("P") == 8 else "cpython of 32 bits"


def main() -> None:
    """Print the sentence, if there is one. A torch that is there already, wherever it comes from, may stay."""
    facts = (platform.system(), platform.machine(), _libc(), platform.python_version(), _interpreter())
    has_torch = importlib.util.find_spec("torch") is not None
    reason = why_not("Linux", "x86_64", "glibc 2.28", facts[3]) if has_torch else why_not(*facts)
    if reason:
        print(reason)
        sys.exit(1)


if __name__ == "__main__":
    main()
