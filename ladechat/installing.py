"""The commands that install missing packages, with the installer of the environment in which ladechat runs."""

import contextlib
import importlib.util
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path


def command_for(*packages: str) -> str:
    """Return the command that installs packages into ladechat's environment, quoted for a shell."""
    python = _executable()
    if importlib.util.find_spec("pip") is None and shutil.which("uv"):
        return shlex.join(("uv", "pip", "install", "--python", python, *packages))
    return shlex.join((python, "-m", "pip", "install", *packages))


def command_for_extra(extra: str) -> str:
    """Return the command that installs an extra of ladechat, by the names and versions of its packages.

    Ladechat's own name is not used: an index of packages may not have it, or have another package of that name.
    """
    with contextlib.suppress(metadata.PackageNotFoundError):
        required = [line.partition(";") for line in metadata.requires("ladechat") or ()]
        marker = f"extra=='{extra}'"
        packages = [name.strip() for name, _, when in required if marker in when.replace(" ", "").replace('"', "'")]
        if packages:
            return command_for(*packages)
    return command_for(
        "-e", f".[{extra}]"
    )  # run from a checkout that was never installed, or before the extra was added


def _executable() -> str:
    """Return the path of the running Python, relative to the working directory if it lies below it."""
    python = Path(sys.executable)
    with contextlib.suppress(OSError, ValueError):  # the working directory was deleted, or is elsewhere
        return str(python.relative_to(Path.cwd()))
    return str(python)
