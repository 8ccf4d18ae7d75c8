"""When Python looks for garbage: in a process that decodes hardly ever, in the app at what is new alone."""

import gc
from typing import Any

SELDOM = (20_000, 5, 5)
"""Young objects are looked through when there are 20,000 new ones, older ones seldom. By default it is 700 (Python
3.11), as many as the n-grams of a few steps: looking through them would take several times as long as learning them."""


def collect_seldom() -> None:
    """Look for garbage now, and from here on seldom.

    What is there now is not looked through again: a reference cycle in it that becomes garbage is never freed.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)


OFTEN = (5_000, 4, 2)
"""At most 75,000 objects are new when all of these are looked through, in some 20 ms."""


def collect_what_is_new() -> None:
    """Look for garbage often, but never at what is there now, or was there when all was looked through.

    A long conversation is a million objects. Going through them takes half a second, in which the app answers no key.
    The price: a reference cycle that becomes garbage after it was frozen is never freed.
    """
    gc.freeze()
    gc.set_threshold(*OFTEN)
    gc.callbacks.append(_freeze_what_stays)


def _freeze_what_stays(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
