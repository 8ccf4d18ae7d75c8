"""The cost of passes by size on this machine: measured once, saved for later sessions, corrected by observation."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.saved import read_value, saved_file, write_value

SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""The numbers of slots for which passes are timed."""
ROUNDS = 3
BUDGET_SECONDS = 1.0
"""No further round starts after so long."""
TOO_DEAR = 8.0
"""A pass that costs more than this many plain ones hardly pays: larger ones are not timed but extrapolated."""

MANY, NEARLY_FREE = 64, 1.3

EVERYWHERE, NEARBY = 0.04, 0.12
"""How far a timed pass corrects all sizes (the machine has become slower, the text longer), and neighbouring sizes."""
MOST_OFF = 2.0
"""A single stall does not mean that the machine is slow: a pass counts as at most this many times the expected time."""

MOST_SLOTS = 1_000_000
LEAST_SECONDS, MOST_SECONDS = 1e-9, 1e6
"""The plausible seconds of a pass: a file with values outside is damaged."""


class PassCosts:
    """The seconds of a pass by its number of slots.

    Args:
        runner: runs the passes.
        file: where the costs are saved between sessions; None measures them in each.
    """

    def __init__(self, runner: Runner, file: Path | None = None) -> None:
        self._runner = runner
        self._file = file
        self._sizes: NDArray[np.float64] = np.empty(0)
        self._seconds: NDArray[np.float64] = np.empty(0)
        self.timed_seconds = 0.0
        """The total seconds of passes that were run only to be timed."""

    @property
    def measured(self) -> bool:
        """Whether costs are known yet."""
        return bool(len(self._sizes))

    def refresh(self) -> None:
        """Read the saved costs, or else measure them, unless they are known already.

        Called between two passes, with one slot of the context free.
        """
        if self.measured:
            return
        saved = read_costs(self._file) if self._file else None
        if saved is None:
            self.measure()
        else:
            self._set(saved)

    def measure(self) -> None:
        """Time all sizes, round after round, and take the minimum of each: other load only makes passes slower.

        The cache does not change; one slot of the context must be free.
        """
        best: dict[int, float] = {}
        began = time.perf_counter()
        self._runner.prepare()
        timing = time.perf_counter()
        for number in range(ROUNDS):
            if number and time.perf_counter() - timing > BUDGET_SECONDS:
                break
            for size in SIZES:
                dear = bool(best) and max(best.values()) > TOO_DEAR * best[1] and size not in best
                if size <= self._runner.max_positions and not dear:
                    best[size] = min(self._time(size), best.get(size, np.inf))
        self.timed_seconds += time.perf_counter() - began
        self._set(best)
        if self._file is not None:
            write_costs(self._file, best)

    def known(self) -> dict[int, float]:
        """Return the seconds of passes by slots, for the measured sizes."""
        return {int(size): float(seconds) for size, seconds in zip(self._sizes, self._seconds, strict=True)}

    def curve(self, most: int) -> NDArray[np.float64]:
        """Return the (most,) seconds of a pass of 1, 2 … `most` slots, interpolated between measured sizes.

        Beyond the largest one they grow in proportion to the slots.
        """
        slots = np.arange(1, most + 1)
        seconds: NDArray[np.float64] = np.interp(slots, self._sizes, self._seconds)
        if most > self._sizes[-1]:
            beyond = int(self._sizes[-1])
            seconds[beyond:] = self._seconds[-1] / beyond * slots[beyond:]
        return seconds

    @property
    def slots_are_nearly_free(self) -> bool:
        """Whether a pass of many slots costs little more than a plain one, as on an idle GPU."""
        curve = self.curve(MANY)
        return bool(curve[-1] <= NEARLY_FREE * curve[0])

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
        sizes = sorted(seconds)
        self._sizes = np.array(sizes, np.float64)
        self._seconds = _rising(np.array([seconds[size] for size in sizes]))

    def _time(self, slots: int) -> float:
        started = time.perf_counter()
        self._runner.argmax(self._runner.forward(SlotTree.chain([0] * slots)))
        seconds = time.perf_counter() - started
        self._runner.commit([])
        return seconds


def costs_file(**about: object) -> Path:
    """Return the file for the costs of a model's passes on this machine: see `saved_file`."""
    return saved_file("costs", **about)


def read_costs(file: Path) -> dict[int, float] | None:
    """Return the saved seconds by slots; None if there are none that can be used."""
    return read_value(file, _usable)


def write_costs(file: Path, seconds: dict[int, float]) -> None:
    """Save costs. Where the file cannot be written, they are measured again the next time."""
    write_value(file, {"seconds": seconds})


def _usable(saved: Any) -> dict[int, float]:
    """Return the seconds in a file's content, by slots: of a plain pass and of larger ones."""
    costs = {int(slots): float(seconds) for slots, seconds in saved["seconds"].items()}
    sensible = all(LEAST_SECONDS <= seconds <= MOST_SECONDS for seconds in costs.values())
    if not sensible or len(costs) == 1 or min(costs) != 1 or max(costs) > MOST_SLOTS:
        raise ValueError("these are no costs")
    return costs


def _rising(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return costs made non-decreasing by slots: a larger pass includes the work of a smaller one.

    So a size that was timed under load does not look slower than larger ones.
    """
    return np.minimum.accumulate(seconds[::-1])[::-1].copy()
