"""The one place where whatever a checkpoint provokes becomes a sentence.

Others wrote its config, tokenizer, template, headers, index and metadata, and the libraries, or our own lines, may
raise anything over them. A check that expects a fault says more about it; what no check expected ends here.
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
"""What the tokenizers raise when they give up; it is no Exception."""

HINT = "Copy it again, or use another copy of the model; the engine's log has the details."
LIBRARIES = re.compile(r"[\\/](transformers|tokenizers|safetensors)[\\/]")


def first_sentence(error: BaseException) -> str:
    """The first sentence of what a library says, as the end of a sentence of ours.

    Python's own words are replaced: they are about a program, where the fault is an entry of a file.
    """
    words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, KeyError):
        return f"nothing is known of {words[:80]}."
    if isinstance(error, PYTHONS_OWN) or PYTHONS_WORDS.search(words):
        return NOT_OF_THE_KIND
    return re.split(r"(?<=[.!?])\s", words)[0][:MOST_OF_AN_ERROR].rstrip(".") + "."


MOST_OF_AN_ERROR = 240
"""Characters of what a library says that are shown; the log has the rest."""


@contextmanager
def faults_said(name: str, passed_on: Callable[[BaseException], bool]) -> Iterator[None]:
    """Make a `LoadError` of whatever is raised while a checkpoint is loaded, and write the trace into the log.

    Args:
        name: what the checkpoint is called in messages.
        passed_on: which errors are no fault of the checkpoint, as that the memory is used up.

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
    """Whether an error may be a fault: what ends a process or a thread is none."""
    return isinstance(error, Exception) or type(error).__name__ == PANIC


def raised_by_a_library(error: BaseException) -> bool:
    """Whether an error comes from the code that reads and computes checkpoints, as the model itself."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__ == PANIC or any(LIBRARIES.search(frame.filename) for frame in frames)
