"""When Python looks for garbage in a process that decodes: hardly ever while tokens come."""

import gc

SELDOM = (20_000, 5, 5)
"""Young objects are looked through when there are 20,000 new ones, older ones seldom. By default it is 700 (Python
3.11), as many as the n-grams of a few steps: looking through them would take several times as long as learning them."""


def collect_seldom() -> None:
    """Look for garbage now, and from here on seldom.

    What is there now is not looked through again: if it becomes garbage that holds itself, it stays.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
