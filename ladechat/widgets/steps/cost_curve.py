"""What a pass costs by its slots, as a curve through the measured sizes."""

from collections.abc import Sequence
from itertools import pairwise

from ladechat.protocol import PassCost

Curve = Sequence[tuple[float, float]]
"""Points sorted by their first coordinate."""


def curve_of(costs: Sequence[PassCost]) -> Curve:
    """Return the cost of a pass, in plain passes, by its slots; the first of `costs` is that of one slot."""
    return [(float(one.slots), one.ms / costs[0].ms) for one in costs]


def value_at(curve: Curve, slots: float) -> float:
    """Return the value of a curve at `slots`, interpolated between its points, constant beyond them."""
    for (low, below), (high, above) in pairwise(curve):
        if slots <= high:
            return below + (above - below) * max(0.0, slots - low) / (high - low) if high > low else above
    return curve[-1][1]
