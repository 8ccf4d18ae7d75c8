"""How far two texts agree: a conversation that goes on, was cut or was edited begins like the one before."""

from collections.abc import Sequence


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many of the first tokens two texts have in common.

    Slices are compared, halves of what is open: that takes microseconds for thousands of tokens.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if list(one[low:middle]) == list(other[low:middle]):
            low = middle
        else:
            high = middle - 1
    return low
