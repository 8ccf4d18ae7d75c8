"""Imports the compute libraries in one place, and explains in a sentence why an import fails."""

import contextlib
import errno
import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ladechat.interrupts import ended_by_ctrl_c
from ladechat.model.checkpoint.files import LoadError
from ladechat.private_folder import runs_no_program

LIBRARIES = ("torch", "transformers")
VARIABLES = ("TORCH", "PYTORCH", "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "SAFETENSORS_", "CUDA", "OMP_", "MKL_")
"""Prefixes of the environment variables that the libraries read while they are imported."""
NOT_MAPPED = re.compile("^(?:.*: )?(.+): failed to map segment from shared object(?!: )", re.MULTILINE)
"""An error of the dynamic linker, which has no class of its own, without a reason. It omits two: too little memory, and
a disk from which no program runs. Where it gives a reason, the cause is another.
"""
NO_MEMORY = os.strerror(errno.ENOMEM)


def import_libraries() -> None:
    """Import torch and transformers, which takes seconds.

    Raises:
        LoadError: see `import_explained`.
    """
    for name in LIBRARIES:
        with import_explained(name), ended_by_ctrl_c():
            importlib.import_module(name)


@contextlib.contextmanager
def import_explained(name: str) -> Iterator[None]:
    """Explain errors of an import within the context.

    Raises:
        LoadError: it is missing or broken, does not fit in memory, is on a disk that runs nothing, or refuses a
            variable of the environment.
    """
    try:
        yield
    except Exception as error:  # a missing system library is an OSError, and there are others
        raise _why_not(name, error) from error


def _why_not(name: str, error: Exception) -> LoadError:
    not_mapped = NOT_MAPPED.search(str(error))
    if not_mapped and (file := Path(not_mapped[1])).exists() and runs_no_program(file):
        message = f"{name} cannot be imported: {file} is on a disk from which no program runs (noexec)."
        return LoadError("load_failed", message, "Install it on another disk, or have this one mounted with exec.")
    if isinstance(error, MemoryError) or not_mapped or NO_MEMORY in str(error):
        hint = "Close what else is running, or raise the limit of this shell (ulimit -v)."
        return LoadError("out_of_memory", f"There is not enough memory to import {name}.", hint)
    if (setting := _refused_setting(error)) is not None:
        message = f"{name} cannot be imported with {setting} in the environment."
        return LoadError("load_failed", message, "Unset that variable, or give it another value.")
    reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
    hint = "Install it anew, as docs/installing.md says; in a checkout: remove .venv, then make setup."
    return LoadError("load_failed", f"{name} cannot be imported: {reason.removesuffix('.')}.", hint)


def _refused_setting(error: Exception) -> str | None:
    """Return the environment variable that caused an error, as NAME=value: the error repeats the value."""
    if isinstance(error, ImportError):
        return None
    for name, value in os.environ.items():
        if name.startswith(VARIABLES) and value and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", str(error)):
            return f"{name}={value}"
    return None
