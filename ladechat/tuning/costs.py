"""What passes of several sizes cost here: measured once, kept for the next session, corrected by what is seen."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.saved import read_value, saved_file, write_value

SIZES = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""The numbers of slots that passes are timed with."""
ROUNDS = 3
BUDGET_SECONDS = 1.0
"""No further round is begun after so long."""
TOO_DEAR = 8.0
"""A pass that costs more than this many plain ones hardly pays: larger ones are not timed, and cost in proportion."""

MANY, NEARLY_FREE = 64, 1.3

EVERYWHERE, NEARBY = 0.04, 0.12
"""How far a timed pass corrects all sizes (the machine has become slower, the text longer), and those beside it."""
MOST_OFF = 2.0
"""A machine that pauses once has not become slow: a pass counts as at most this many times what was expected."""

MOST_SLOTS = 1_000_000
LEAST_SECONDS, MOST_SECONDS = 1e-9, 1e6
"""No pass takes less, and nobody has waited for one that takes more: such a file is damaged."""


class PassCosts:
    """The seconds of a pass by its slots.

    Args:
        runner: whose passes they are.
        file: where they are kept from session to session; None measures them in each.
    """

    def __init__(self, runner: Runner, file: Path | None = None) -> None:
        self._runner = runner
        self._file = file
        self._sizes: NDArray[np.float64] = np.empty(0)
        self._seconds: NDArray[np.float64] = np.empty(0)
        self.timed_seconds = 0.0
        """What all passes have taken that were run only to be timed."""

    @property
    def measured(self) -> bool:
        """Whether anything is known yet."""
        return bool(len(self._sizes))

    def refresh(self) -> None:
        """Read what was kept, or measure, if nothing is known. Called between two passes, one slot of context free."""
        if self.measured:
            return
        kept = read_costs(self._file) if self._file else None
        if kept is None:
            self.measure()
        else:
            self._set(kept)

    def measure(self) -> None:
        """Time all sizes, round after round, and keep the least of each: what else runs can only make a pass slower.

        The cache stays as it is; one slot of the context must be free.
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
        """The seconds of passes by their slots, the sizes that were measured."""
        return {int(size): float(seconds) for size, seconds in zip(self._sizes, self._seconds, strict=True)}

    def curve(self, most: int) -> NDArray[np.float64]:
        """(most,) the seconds of a pass of 1, 2 … `most` slots: between measured sizes in proportion, and beyond."""
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
        """Correct what is known by a pass that was timed: all sizes a little, those beside it more."""
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
    """Return where the costs of a model's passes are saved, as it runs here: see `saved_file`."""
    return saved_file("costs", **about)


def read_costs(file: Path) -> dict[int, float] | None:
    """Return the seconds that are saved, by slots; None if nothing usable is."""
    return read_value(file, _usable)


def write_costs(file: Path, seconds: dict[int, float]) -> None:
    """Save costs. Where nothing can be written they are measured again the next time."""
    write_value(file, {"seconds": seconds})


def _usable(saved: Any) -> dict[int, float]:
    """Return the seconds that a file holds, by slots: of a plain pass and of larger ones."""
    costs = {int(slots): float(seconds) for slots, seconds in saved["seconds"].items()}
    sensible = all(LEAST_SECONDS <= seconds <= MOST_SECONDS for seconds in costs.values())
    if not sensible or len(costs) == 1 or min(costs) != 1 or max(costs) > MOST_SLOTS:
        raise ValueError("these are no costs")
    return costs


def _rising(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Costs by rising slots, none above the next: a larger pass does the work of a smaller one.

    So a size that was timed in a loud moment does not look dearer than those above it.
    """
    return np.minimum.accumulate(seconds[::-1])[::-1].copy()
