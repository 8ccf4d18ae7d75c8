"""The one place where any error that a checkpoint provokes becomes a sentence.

Its config, tokenizer, template, headers, index and metadata were written by others, and the libraries, or our own code,
may raise anything on them. A check that expects a fault gives a better message; unexpected ones end here.
"""

import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ladechat.model.checkpoint.files import LoadError

PYTHONS_OWN = (TypeError, AttributeError, LookupError, RecursionError, AssertionError, ArithmeticError)
PYTHONS_WORDS = re.compile(r"invalid literal for|could not convert|<class |TypeError|Overflow when unpacking")
NOT_OF_THE_KIND = "an entry of its files is not of the kind that belongs there."

PANIC = "PanicException"
"""The class that the tokenizers library raises on a panic; it is no subclass of Exception."""

HINT = "Copy it again, or use another copy of the model; the engine's log has the details."
LIBRARIES = re.compile(r"[\\/](transformers|tokenizers|safetensors)[\\/]")


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


MOST_OF_AN_ERROR = 240
"""The most characters of a library's message that are shown; the log has the rest."""


@contextmanager
def faults_said(name: str, passed_on: Callable[[BaseException], bool]) -> Iterator[None]:
    """Turn any error raised while a checkpoint is loaded into a `LoadError`, and write the trace to the log.

    Args:
        name: the checkpoint's name in messages.
        passed_on: returns whether an error is not the checkpoint's fault, such as an out-of-memory error.

    Raises:
        LoadError: the checkpoint is at fault.
    """
    try:
        yield
    except LoadError:
        raise
    except BaseException as error:
        if not is_fault(error) or passed_on(error):
            raise
        traceback.print_exception(error)
        raise LoadError("load_failed", f"{name} cannot be loaded: {first_sentence(error)}", HINT) from error


def is_fault(error: BaseException) -> bool:
    """Return whether an error may be a fault, unlike exceptions that end a process or a thread."""
    return isinstance(error, Exception) or type(error).__name__ == PANIC


def raised_by_a_library(error: BaseException) -> bool:
    """Return whether an error was raised inside the libraries that read and run checkpoints."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__ == PANIC or any(LIBRARIES.search(frame.filename) for frame in frames)
