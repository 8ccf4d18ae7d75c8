"""How a missing package is installed: by the installer of the environment that ladechat runs in."""

import contextlib
import importlib.util
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path


def command_for(*packages: str) -> str:
    """Return the command that installs packages beside ladechat, as it is typed into a shell."""
    python = _executable()
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return shlex.join(("uv", "pip", "install", "--python", python, *packages))
    return shlex.join((python, "-m", "pip", "install", *packages))


def command_for_extra(extra: str) -> str:
    """Return the command that installs what ladechat has as an extra, by the names and versions of its packages.

    Not by ladechat's own name, which an index of packages may not know, or know as somebody else's.
    """
    with contextlib.suppress(metadata.PackageNotFoundError):
        required = [line.partition(";") for line in metadata.requires("ladechat") or ()]
        marker = f"extra=='{extra}'"
        packages = [name.strip() for name, _, when in required if marker in when.replace(" ", "").replace('"', "'")]
        if packages:
            return command_for(*packages)
    return command_for(
        "-e", f".[{extra}]"
    )  # run from a checkout that was never installed, or before the extra was there


def _executable() -> str:
    """Return the path of the running Python, relative to the working directory where it lies below it."""
    python = Path(sys.executable)
    with contextlib.suppress(OSError, ValueError):  # the working directory was deleted, or is another one
        return str(python.relative_to(Path.cwd()))
    return str(python)
