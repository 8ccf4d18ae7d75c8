"""The cost of passes by size on this machine: measured once, saved for later sessions, corrected by observation."""

import time
from bisect import bisect_left
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.saved import read_value, write_value

SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # the numbers of slots for which passes are timed
ROUNDS, AGAIN = 3, (1,) * 5  # after loading, or a large pass, it takes some plain ones until these are fast
QUICK_SECONDS = 0.1  # of a plain pass: slower ones are not repeated before the first round
BUDGET_SECONDS = 1.0  # no further round starts after so long
TOO_DEAR = 8.0  # a pass of more than so many plain ones hardly pays: larger ones are not timed but extrapolated
NEARLY_FREE = 1.3  # plain passes
NEARBY = 0.06  # the share of a timed pass's surprise by which what was measured of sizes like its own is corrected
NOISE, DRIFT = 0.05, 0.003  # standard deviations: of a pass's time, and of what pace and price change from pass to pass
UNSURE = (0.03, 0.3)  # the same of pace and price before the first pass
BRANCH = 4  # slots in each branch of a timed pass that several processes divide: a chain cannot be divided
MOST_OFF = 1.2  # a single stall is no slow machine: a pass counts as at most this many times the expected time


class _Trend:
    """What passes take now against what was measured: two numbers that a Kalman filter estimates from every pass.

    A pass of T slots with n cached tokens is expected to take ``pace · measured(T) + price · T · n`` seconds. The pace
    is 1 unless other work slows the machine. The price is what attention to a cached token adds to each slot, here in
    plain passes for 1,000 tokens: about 0.5 in llama.cpp on a CPU, where drafts become dearer as a text grows.
    """

    def __init__(self) -> None:
        self.pace, self.price = 1.0, 0.0
        self._pace_variance, self._covariance, self._price_variance = UNSURE[0] ** 2, 0.0, UNSURE[1] ** 2

    def observe(self, seen: float, tokens: float) -> None:
        """Learn from a pass that took `seen` times its measured seconds, and pays the price `tokens` times."""
        surprise = seen - (self.pace + self.price * tokens)
        of_pace = self._pace_variance + DRIFT**2 + self._covariance * tokens
        of_price = self._covariance + (self._price_variance + DRIFT**2) * tokens
        variance = of_pace + of_price * tokens + NOISE**2
        self.pace += of_pace / variance * surprise
        self.price = max(0.0, self.price + of_price / variance * surprise)
        self._pace_variance += DRIFT**2 - of_pace**2 / variance
        self._covariance -= of_pace * of_price / variance
        self._price_variance += DRIFT**2 - of_price**2 / variance


class PassCosts:
    """The seconds of a pass with the present cache by its slots; saved in a file between sessions, if one is given."""

    def __init__(self, runner: Runner, file: Path | None = None) -> None:
        self._runner, self._file = runner, file
        self._sizes, self._seconds = list[int](), list[float]()
        self._trend = _Trend()
        self.timed_seconds = 0.0  # of passes that were run only to be timed

    def refresh(self) -> None:
        """Read the saved costs, or else measure them, unless they are known already."""
        if not self._sizes:
            saved = read_costs(self._file) if self._file else None
            if saved is None:
                self.measure()
            else:
                self._set(saved)

    def measure(self) -> None:
        """Time all sizes between two passes, in rounds, and take each one's minimum: other load only adds to it."""
        began = time.perf_counter()
        self._runner.prepare()
        timing = time.perf_counter()
        best = {1: timed_pass(self._runner, 1)}
        for number in range(ROUNDS):
            if number and time.perf_counter() - timing > BUDGET_SECONDS:
                break
            for size in (*AGAIN, *SIZES) if number or best[1] < QUICK_SECONDS else SIZES[1:]:
                dear = max(best.values()) > TOO_DEAR * best[1] and size not in best
                if size <= self._runner.max_positions and not dear:
                    best[size] = min(timed_pass(self._runner, size), best.get(size, np.inf))
                    if best[size] > TOO_DEAR * best[1]:  # or it was a single stall
                        best[size] = min(timed_pass(self._runner, size), best[size])
        self.timed_seconds += time.perf_counter() - began
        self._set(best)
        if self._file is not None:
            write_value(self._file, {"seconds": best})

    def known(self) -> dict[int, float]:
        """Return the seconds of passes by slots, for the measured sizes."""
        return {size: self.seconds(size) for size in self._sizes}

    def curve(self, most: int) -> NDArray[np.float64]:
        """Return the (most,) seconds of a pass of 1, 2 … `most` slots."""
        slots = np.arange(1, most + 1)
        measured = np.interp(slots, self._sizes, self._seconds) * np.maximum(1.0, slots / self._sizes[-1])
        seconds: NDArray[np.float64] = self._trend.pace * measured + self._trend.price * self._cached() * slots
        return seconds

    def seconds(self, slots: int) -> float:
        """Return the seconds of a pass of so many slots."""
        return self._trend.pace * self._measured(slots) + self._trend.price * self._cached() * slots

    @property
    def slots_are_nearly_free(self) -> bool:
        """Whether a pass of many slots costs little more than a plain one, as on an idle GPU."""
        return self.slots_within(NEARLY_FREE) == SIZES[-1]

    def slots_within(self, passes: float) -> int:
        """Return the most slots, up to the largest of `SIZES`, of a pass that costs at most so many plain ones."""
        curve = self.curve(SIZES[-1])
        return int(np.searchsorted(curve, passes * curve[0], side="right"))

    def observe(self, slots: int, seconds: float) -> None:
        """Follow a pass that took so long: the trend of all sizes, and what was measured of sizes like its own."""
        measured, expected = self._measured(slots), self.seconds(slots)
        seconds = min(max(seconds, expected / MOST_OFF), expected * MOST_OFF)
        self._trend.observe(seconds / measured, self._cached() * slots / measured)
        off = seconds / self.seconds(slots) - 1
        right = self._next_size(slots)
        for index in {right, right if self._sizes[right] <= slots else right - 1}:
            self._seconds[index] *= 1 + off * NEARBY
        self._seconds = _rising(self._seconds)

    def _set(self, seconds: dict[int, float]) -> None:
        self._sizes, self._seconds = sorted(seconds), _rising([seconds[size] for size in sorted(seconds)])
        self._trend = _Trend()

    def _measured(self, slots: int) -> float:
        """Return the seconds that a pass took when it was measured: interpolated, and in proportion beyond SIZES."""
        right = self._next_size(slots)
        size, seconds = self._sizes[right], self._seconds[right]
        if slots >= size:
            return seconds * slots / size
        before = self._sizes[right - 1]
        return seconds - (seconds - self._seconds[right - 1]) * (size - slots) / (size - before)

    def _next_size(self, slots: int) -> int:
        """Return the index of the smallest measured size of at least so many slots, or of the largest one."""
        return min(bisect_left(self._sizes, slots), len(self._sizes) - 1)

    def _cached(self) -> float:
        """Return the thousands of cached tokens, times the seconds of a plain pass: the price's unit."""
        return len(self._runner.tokens) * self._seconds[0] / 1000


def timed_pass(runner: Runner, slots: int) -> float:
    """Return the seconds of a pass of so many slots, for which the context must have room. The cache stays as it is."""
    tree = SlotTree.chain([0] * slots) if runner.capabilities.processes == 1 else _branches(slots)
    started = time.perf_counter()
    runner.argmax(runner.forward(tree))
    seconds = time.perf_counter() - started
    runner.commit([])
    return seconds


def _branches(slots: int) -> SlotTree:
    """Return a tree of so many slots: branches of `BRANCH` slots below slot 0."""
    tree = SlotTree(0)
    for slot in range(1, slots):
        tree.add(slot - 1 if slot % BRANCH != 1 else 0, slot // BRANCH)
    return tree


def read_costs(file: Path) -> dict[int, float] | None:
    """Return the saved seconds by slots, of a plain pass and larger ones; None if there are none that can be used."""

    def usable(saved: Any) -> dict[int, float]:
        costs = {int(slots): float(seconds) for slots, seconds in saved["seconds"].items()}
        plausible = len(costs) > 1 and all(1e-9 <= seconds <= 1e6 for seconds in costs.values())
        if not plausible or min(costs) != 1 or max(costs) > 1_000_000:
            raise ValueError("these are no costs")
        return costs

    return read_value(file, usable)


def _rising(seconds: list[float]) -> list[float]:
    """Return costs made non-decreasing by slots: one that was timed under load is no dearer than a larger pass."""
    return [*accumulate(reversed(seconds), min)][::-1]
