"""Machines that are written down: what passes cost there, and what is lost of a processor's cache."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

REGAINED = 0.2
"""The part of what a cache has lost that a pass brings back: see `benchmarks.away`."""


@dataclass(frozen=True)
class Machine:
    """What passes take there, in milliseconds by their slots, and what is done besides, in microseconds.

    Attributes:
        passes: as a pass of another size takes in proportion between two of these.
        filled_up: whether a pass takes as long as the next of these sizes, as compiled ones do.
        plain_us, guesses_us: besides the pass of a step without guesses, and of one with some.
        asked_us: of auto, at a step that asks the pool.
        behind_us: of auto, behind a rest.
        rode_us, ridden_us: of auto, behind a ride, and besides for each step of it. All four are as on the AMD EPYC
            of the compiled passes, unless they are given.
        lost: what passes take longer behind a second in which something else was done than plain decoding, in seconds:
            others who share the processor's cache have taken the place of the weights there. See `benchmarks.away`.
    """

    passes: Mapping[int, float]
    filled_up: bool
    plain_us: float
    guesses_us: float
    asked_us: float = 60
    behind_us: float = 150
    rode_us: float = 140
    ridden_us: float = 20
    lost: float = 0.0
    _sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sizes", sorted(self.passes))

    def pass_seconds(self, slots: int) -> float:
        """A pass of so many slots."""
        index = bisect_left(self._sizes, slots)
        if index == len(self._sizes):
            return self.passes[self._sizes[-1]] * slots / self._sizes[-1] / 1000
        high = self._sizes[index]
        if high == slots or self.filled_up:
            return self.passes[high] / 1000
        low = self._sizes[index - 1]
        return (self.passes[low] + (self.passes[high] - self.passes[low]) * (slots - low) / (high - low)) / 1000

    def step_seconds(self, slots: int) -> float:
        """A step of a decoder with fixed settings, the weights being where they are behind plain steps."""
        return self.pass_seconds(slots) + (self.plain_us if slots == 1 else self.guesses_us) / 1e6

    def seconds(self, slots: Sequence[int]) -> float:
        """Steps of a decoder with fixed settings, one behind the other."""
        cache = Cache(self)
        return sum(cache.slower(one) + self.step_seconds(one) for one in slots)


class Cache:
    """What a processor's cache has lost of the weights, in seconds that it takes to read them again."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._lost = machine, 0.0

    def slower(self, slots: int) -> float:
        """By how many seconds the next pass takes longer, of a step of so many slots."""
        regained = REGAINED * self._lost
        self._lost -= regained
        self.away(self._machine.step_seconds(slots) - self._machine.step_seconds(1))
        return regained

    def away(self, seconds: float) -> None:
        """For so long something else is done."""
        self._lost += self._machine.lost * seconds


MACHINES = {
    "compiled": Machine({1: 0.4, 2: 0.52, 4: 0.8, 8: 1.45, 16: 2.9, 32: 5.6, 64: 11.0}, True, 25, 110),
    "compiled, shared cache": Machine(
        {1: 0.95, 2: 1.08, 4: 1.22, 8: 1.6, 16: 2.7, 32: 5.1, 64: 10.0},
        True,
        70,
        300,
        asked_us=180,
        behind_us=320,
        rode_us=300,
        ridden_us=45,
        lost=0.7,
    ),
    "eager": Machine({1: 5.0, 2: 5.5, 4: 5.7, 8: 6.1, 16: 7.3, 32: 9.0, 64: 13.0, 128: 22.0}, False, 100, 200),
    "slots nearly free": Machine(
        {1: 12.0, 8: 12.1, 16: 12.2, 32: 12.4, 64: 12.9, 128: 13.9, 256: 17.0}, False, 100, 250
    ),
}
"""The first three as the bundled model was timed on two CPUs, the second while others used its cache; the last as a
model of 7 billion parameters on a GPU should be, by the targets of `benchmarks.gpu`: none was timed."""
