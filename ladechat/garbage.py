"""When Python looks for garbage: in a process that decodes rarely, in the app among new objects alone.

Garbage here is what refers to itself in a circle, as a closed screen does. All else is freed once nobody needs it.
"""

import gc
from typing import Any

RARELY = (20_000, 5, 5)
"""Young objects are looked through when there are 20,000 new ones, older ones rarely. By default it is 700 (Python
3.11), as many as the n-grams of a few steps: looking through them would take several times as long as learning them."""


def collect_rarely() -> None:
    """Look for garbage now, and from here on rarely: what is there now is not looked through until the next call."""
    collect_everything()
    gc.set_threshold(*RARELY)


OFTEN = (5_000, 4, 2)
"""At most 75,000 objects are new when all of these are looked through, in some 20 ms."""


def collect_what_is_new() -> None:
    """Look for garbage often, but not at what is there now, or was there when all that was new was looked through.

    The steps of a long conversation are a million objects. Going through them takes half a second, in which the app
    answers no key. So what becomes garbage after it was looked through has to be freed by `collect_everything`.
    """
    gc.freeze()
    gc.set_threshold(*OFTEN)
    gc.callbacks.append(_freeze_what_stays)


def collect_everything() -> None:
    """Free all garbage there is. It takes the longer the more is there: for a moment in which nobody waits."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def free_what_was_closed() -> None:
    """Free what was still in use when it was looked through; where nothing is left out, that comes by itself."""
    if _freeze_what_stays in gc.callbacks:
        collect_everything()


def _freeze_what_stays(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
