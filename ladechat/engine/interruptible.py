"""Work that is abandoned as soon as the user stops it, although it does not check for commands itself."""

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

SECONDS_BETWEEN_LOOKS = 0.05
"""The longest delay until a stop is noticed."""


class GivenUp(BaseException):
    """Raised in the thread of abandoned work, to end it."""


def unless_stopped(work: Callable[[], _T], stop_wanted: Callable[[], bool]) -> _T | None:
    """Return the result of `work`, or None if it was stopped. It then ends by itself, at its next line of Python.

    Raises:
        BaseException: any error that `work` raised.
    """
    results: list[_T] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # the tokenizers' own panic is no Exception
            errors.append(error)
        ended.set()

    thread = threading.Thread(target=run, name="work", daemon=True)
    thread.start()
    while not ended.wait(SECONDS_BETWEEN_LOOKS):
        if stop_wanted():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(GivenUp))
            return None
    if errors:
        raise errors.pop()  # a reference from this frame would keep the error alive, and all that the work allocated
    return results[0]
