"""Costs of passes that are made up: what the adaptive policy is tested with, on any machine, without a clock."""

import random
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.registry import Shared, TrainedParts
from ladechat.tuning.costs import PassCosts

Curve = Callable[[int], float]
"""Seconds of a pass, by its slots."""


def free(slots: int) -> float:
    """However many slots: as on an idle GPU."""
    return 1.0


def dear(slots: int) -> float:
    """Every slot costs as much as a plain pass."""
    return float(slots)


def moderate(slots: int) -> float:
    """Ten slots more double the price."""
    return 1.0 + slots / 10


def drawn(seed: int) -> Curve:
    """Without any sense, and other ones at every step: so choices vary as much as they can."""
    dice = random.Random(seed)
    return lambda slots: dice.uniform(0.1, 1.0) * (1 + dice.choice([0.0, 0.02, 0.3]) * slots)


class MadeUpCosts(PassCosts):
    """Made-up costs that follow a curve: never timed, never corrected.

    Args:
        curve: seconds by slots.
        window: whether the window of `auto` takes part.
    """

    def __init__(self, curve: Curve, window: bool = False) -> None:
        super().__init__(cast(Any, None))
        self._curve, self._window = curve, window

    def refresh(self) -> None:
        """They are known."""

    def curve(self, most: int) -> NDArray[np.float64]:
        return np.array([self._curve(slots) for slots in range(1, most + 1)])

    def seconds(self, slots: int) -> float:
        return self._curve(slots)

    @property
    def slots_are_nearly_free(self) -> bool:
        return self._window

    def observe(self, slots: int, seconds: float) -> None:
        """A clock says nothing here."""


class NotedCosts(MadeUpCosts):
    """Costs that keep what they are told of passes: their slots and seconds."""

    def __init__(self, curve: Curve) -> None:
        super().__init__(curve)
        self.seen: list[tuple[int, float]] = []

    def observe(self, slots: int, seconds: float) -> None:
        self.seen.append((slots, seconds))


def shared(
    curve: Curve, window: bool = False, pool: NGramPool | None = None, trained: Mapping[str, TrainedParts] | None = None
) -> Shared:
    """What decoders have in common, with these costs; unless they are given, an empty pool and nothing trained."""
    return Shared(MadeUpCosts(curve, window), NGramPool() if pool is None else pool, trained=trained or {})
