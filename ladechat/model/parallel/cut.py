"""Divides the slots of a pass among processes, each of which holds the whole model."""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

CACHED_SHAPES = 256


class Part(NamedTuple):
    """The slots of one process.

    Attributes:
        own: those whose logits it gives; none may be left for it.
        slots: these, all their ancestors, and slot 0; a slot comes after its parent.
    """

    own: tuple[int, ...]
    slots: tuple[int, ...]


@lru_cache(CACHED_SHAPES)
def cut(parents: tuple[int, ...], before: tuple[int, ...]) -> tuple[Part, ...]:
    """Divide the slots of a tree so that the largest pass of a process is as small as this way allows.

    In depth-first order each process gets a run of slots; the ancestors of all of them are in the run, or those of its
    first slot. So a run of n slots that begins at depth d is a pass of n + d. With D the depth of the tree, no pass
    needs more than (T + the slots before + (N - 1) · D) / N slots, rounded up, or those before and slot 0.

    Example: below the last token there are ``a → b → c`` and ``d → e``. Of two processes one gets the last token, a, b
    and c; the other d and e, and computes the last token again.

    Args:
        parents: (T,) each slot's parent, as in `SlotTree`.
        before: (N,) the slots that each process has to compute before its own.
    """
    order, depths = _depth_first(parents)

    def ends(most: int) -> list[int]:
        """Return where the run of each process ends if its pass has at most so many slots."""
        found, end = list[int](), 0
        for already in before:
            room = most - already - depths[order[end]] if end < len(order) else 0
            end = min(end + max(room, 0), len(order))
            found.append(end)
        return found

    sizes = range(len(parents) + max(before) + 1)
    runs = ends(bisect_left(sizes, len(order), key=lambda most: ends(most)[-1]))
    return tuple(_part(order[begin:end], parents) for begin, end in zip([0, *runs], runs, strict=False))


def largest_pass(parents: tuple[int, ...], processes: int) -> int:
    """Return the slots of the largest pass, if so many processes share a pass of this tree."""
    return max(len(part.slots) for part in cut(parents, (0,) * processes))


def _depth_first(parents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return all slots in depth-first order, and for each slot how many ancestors it has."""
    children: list[list[int]] = [[] for _ in parents]
    depths = [0] * len(parents)
    for slot, parent in enumerate(parents[1:], 1):
        children[parent].append(slot)
        depths[slot] = depths[parent] + 1
    order, waiting = list[int](), [0]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(children[order[-1]])
    return order, depths


def _part(own: Sequence[int], parents: Sequence[int]) -> Part:
    slots = {0, *own}
    above = own[0] if own else 0
    while above:
        above = parents[above]
        slots.add(above)
    return Part(tuple(own), tuple(sorted(slots)))
