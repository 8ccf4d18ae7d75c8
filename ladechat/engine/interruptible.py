"""Work that is given up as soon as the user stops it, although it looks for no commands itself."""

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

SECONDS_BETWEEN_LOOKS = 0.05
"""How late a stop may be heard."""


class GivenUp(BaseException):
    """Raised in the thread of work that nobody waits for any more."""


def unless_stopped(work: Callable[[], _T], stop_wanted: Callable[[], bool]) -> _T | None:
    """What `work` returns; None if it was stopped. It then ends by itself, at its next line of Python.

    Raises:
        BaseException: what `work` raised.
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
        raise errors.pop()  # a frame that kept it would be kept by it, and with it all that the work had made
    return results[0]
