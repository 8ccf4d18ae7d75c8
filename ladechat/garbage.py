"""When Python looks for garbage in a process that decodes: hardly ever while tokens come."""

import gc

SELDOM = (20_000, 5, 5)
"""A look at so many objects more than at the last one, and seldom at older ones. Otherwise it is at some hundred, which
the n-grams of a few steps are: to look through them takes several times as long as to learn them."""


def collect_seldom() -> None:
    """Look for garbage now, and from here on seldom.

    What is there now is not looked through again: if it becomes garbage that holds itself, it stays.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
