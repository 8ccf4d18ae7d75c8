"""The one place where any error that a checkpoint provokes becomes a sentence.

Its config, tokenizer, template, headers, index and metadata were written by others, and the libraries, or our own code,
may raise anything on them. A check that expects a fault gives a better message; unexpected ones end here.
"""

import contextlib
import errno
import importlib
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ladechat.interrupts import ended_by_ctrl_c
from ladechat.model.checkpoint.files import LoadError
from ladechat.private_folder import runs_no_program

PYTHONS_OWN = (TypeError, AttributeError, LookupError, RecursionError, AssertionError, ArithmeticError)
PYTHONS_WORDS = re.compile(r"invalid literal for|could not convert|<class |TypeError|Overflow when unpacking")
NOT_OF_THE_KIND = "an entry of its files is not of the kind that belongs there."

PANIC = "PanicException"
"""The class that the tokenizers library raises on a panic; it is no subclass of Exception."""

MOST_OF_AN_ERROR = 240
"""The most characters of a library's message that are shown; the log has the rest."""

HINT = "Copy it again, or use another copy of the model; the engine's log has the details."
IN_A_LIBRARY = re.compile(r"[\\/](transformers|tokenizers|safetensors)[\\/]")

LIBRARIES = ("torch", "transformers")
VARIABLES = ("TORCH", "PYTORCH", "HF_", "HUGGINGFACE_", "TRANSFORMERS_", "SAFETENSORS_", "CUDA", "OMP_", "MKL_")
"""Prefixes of the environment variables that the libraries read while they are imported."""
NOT_MAPPED = re.compile("^(?:.*: )?(.+): failed to map segment from shared object(?!: )", re.MULTILINE)
"""An error of the dynamic linker, which has no class of its own, without a reason. It omits two: too little memory, and
a disk from which no program runs. Where it gives a reason, the cause is another.
"""
NO_MEMORY = os.strerror(errno.ENOMEM)


def first_sentence(error: BaseException) -> str:
    """Return the first sentence of a library's error, as the end of a sentence of ours.

    Python's own messages are replaced: they are about code, while the fault is an entry of a file.
    """
    words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError):
        return f"nothing is known of {words[:80]}."
    if isinstance(error, PYTHONS_OWN) or PYTHONS_WORDS.search(words):
        return NOT_OF_THE_KIND
    return re.split(r"(?<=[.!?])\s", words)[0][:MOST_OF_AN_ERROR].rstrip(".") + "."


@contextmanager
def faults_said(name: str, passed_on: Callable[[BaseException], bool]) -> Iterator[None]:
    """Turn any error raised while a checkpoint is loaded into a `LoadError`, and write the trace to the log.

    Errors that are `passed_on` are not the checkpoint's fault, such as an out-of-memory error.

    Raises:
        LoadError: the checkpoint is at fault.
    """
    try:
        yield
    except LoadError:
        raise
    except BaseException as error:
        # Other exceptions than these end a process or a thread.
        if not (isinstance(error, Exception) or type(error).__name__ == PANIC) or passed_on(error):
            raise
        traceback.print_exception(error)
        raise LoadError("load_failed", f"{name} cannot be loaded: {first_sentence(error)}", HINT) from error


def raised_by_a_library(error: BaseException) -> bool:
    """Return whether an error was raised inside the libraries that read and run checkpoints."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__ == PANIC or any(IN_A_LIBRARY.search(frame.filename) for frame in frames)


def import_libraries(packed: bool = False) -> None:
    """Import torch, and for a model that does not stay packed transformers, which takes seconds.

    Raises:
        LoadError: see `import_explained`.
    """
    for name in LIBRARIES[:1] if packed else LIBRARIES:
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
