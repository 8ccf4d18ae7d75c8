"""The common prefix of two texts: a continued, cut or edited conversation begins like the one before."""

from collections.abc import Sequence


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of leading tokens that two texts have in common.

    Binary search over compared slices: microseconds for thousands of tokens.
    """
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if list(one[low:middle]) == list(other[low:middle]):
            low = middle
        else:
            high = middle - 1
    return low
