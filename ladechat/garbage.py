"""Schedules Python's garbage collection: rare in a process that decodes, limited to new objects in the app.

Only reference cycles, such as those of a closed screen, are garbage here. All else is freed by reference counting.
"""

import gc
from typing import Any

RARELY = (20_000, 5, 5)
"""Young objects are scanned when there are 20,000 new ones, older ones rarely. The default is 700 (Python 3.11), as
many as the n-grams of a few steps: scanning them would take several times as long as learning them.
"""


def collect_rarely() -> None:
    """Collect garbage now, and rarely from now on: present objects are not scanned until the next call."""
    collect_everything()
    gc.set_threshold(*RARELY)


OFTEN = (5_000, 4, 2)
"""At most 75,000 new objects exist when all of them are scanned, which takes about 20 ms."""


def collect_what_is_new() -> None:
    """Collect garbage often, but only among new objects: those that exist now, or survived a full scan, are left out.

    The steps of a long conversation are a million objects. Scanning them takes half a second, in which the app responds
    to no key. So objects that become garbage after their scan have to be freed by `collect_everything`.
    """
    gc.freeze()
    gc.set_threshold(*OFTEN)
    gc.callbacks.append(_freeze_what_stays)


def collect_everything() -> None:
    """Free all garbage. It takes longer with more objects: call it at a moment when nobody waits."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def free_what_was_closed() -> None:
    """Free objects that became garbage after their scan; needed only if `collect_what_is_new` is active."""
    if _freeze_what_stays in gc.callbacks:
        collect_everything()


def _freeze_what_stays(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
