"""The cost of passes by size on this machine: measured once, saved for later sessions, corrected by observation."""

import time
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
EVERYWHERE, NEARBY = 0.04, 0.12  # how far a timed pass corrects all sizes, and neighbouring ones in addition
BRANCH = 4  # slots in each branch of a timed pass that several processes divide: a chain cannot be divided
MOST_OFF = 2.0  # a single stall is no slow machine: a pass counts as at most this many times the expected time


class PassCosts:
    """The seconds of a pass by its number of slots; saved in a file between sessions, if one is given."""

    def __init__(self, runner: Runner, file: Path | None = None) -> None:
        self._runner, self._file = runner, file
        self._sizes = self._seconds = np.empty(0)
        self.timed_seconds = 0.0  # of passes that were run only to be timed

    def refresh(self) -> None:
        """Read the saved costs, or else measure them, unless they are known already."""
        if not len(self._sizes):
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
        return dict(zip(self._sizes.astype(int).tolist(), self._seconds.tolist(), strict=True))

    def curve(self, most: int) -> NDArray[np.float64]:
        """Return the (most,) seconds of a pass of 1, 2 … `most` slots: interpolated, and in proportion beyond SIZES."""
        slots = np.arange(1, most + 1)
        seconds: NDArray[np.float64] = np.interp(slots, self._sizes, self._seconds)
        seconds *= np.maximum(1.0, slots / self._sizes[-1])
        return seconds

    @property
    def slots_are_nearly_free(self) -> bool:
        """Whether a pass of many slots costs little more than a plain one, as on an idle GPU."""
        return self.slots_within(NEARLY_FREE) == SIZES[-1]

    def slots_within(self, passes: float) -> int:
        """Return the most slots, up to the largest of `SIZES`, of a pass that costs at most so many plain ones."""
        curve = self.curve(SIZES[-1])
        return int(np.searchsorted(curve, passes * curve[0], side="right"))

    def observe(self, slots: int, seconds: float) -> None:
        """Correct the costs by a timed pass: all sizes a little, neighbouring sizes more."""
        expected = float(self.curve(slots)[-1])
        off = min(max(seconds / expected, 1 / MOST_OFF), MOST_OFF) - 1
        right = min(int(np.searchsorted(self._sizes, slots)), len(self._sizes) - 1)
        self._seconds *= 1 + off * EVERYWHERE
        for index in {right, right if self._sizes[right] <= slots else right - 1}:
            self._seconds[index] *= 1 + off * NEARBY
        self._seconds = _rising(self._seconds)

    def _set(self, seconds: dict[int, float]) -> None:
        self._sizes, known = np.array(sorted(seconds.items())).T
        self._seconds = _rising(known)


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


def _rising(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return costs made non-decreasing by slots: one that was timed under load is no dearer than a larger pass."""
    return np.minimum.accumulate(seconds[::-1])[::-1].copy()
