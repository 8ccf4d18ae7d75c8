"""When Python looks for garbage in a process that decodes: hardly ever while tokens come."""

import gc

SELDOM = 100_000
"""So many objects more than at the last look. Otherwise it is some hundred, which the n-grams of a few steps are: to
look through them takes several times as long as to learn them. Most garbage does not wait for it anyway."""


def collect_seldom() -> None:
    """Look for garbage now, and from here on seldom. What is there is not looked through again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(SELDOM)
