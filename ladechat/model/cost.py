"""What passes cost here, measured: a plain one, the yardstick of an estimated speedup, and those of several sizes."""

import math
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import causal_layout
from ladechat.model.cost_file import Kept, read_costs, write_costs

REACH = 256
"""A measurement speaks for cache lengths in the same stretch of this many tokens."""

FIRST_PROBES = 3
KEPT_SAMPLES = 7
AT_MOST = 2.0
"""A pass counts as so many times as long as expected at most: a machine that pauses once has not become slow."""
BUDGET = 0.01
"""The share of the decoding time that further probes may take: conditions change while an answer runs."""
BUDGET_OF_KNOWN = 0.001
"""The same of sizes that were all timed in this session: what changes most, steps themselves tell."""

SIZES = (1, 16, 4, 8, 2, 32, 64, 128)
"""The numbers of slots that passes are timed with, those that tell the most first."""
MEASURED_SECONDS = 1.0
SETTLED_SECONDS = 0.005
"""For so long a size is timed again and again: a short pass is slower right behind one of another size, which has taken
its weights out of the processor's cache."""
DISTURBING, SETTLING = 16, 8
"""So many plain passes settle, as many are timed, then one of so many slots at most, and again so many plain ones."""
IN_CACHE_SECONDS = 0.003
"""Of a model whose plain passes take longer little is in a processor's cache from one pass to the next."""
TELLING = 1.2
"""It takes a pass that is longer than a plain one by this factor to tell what is lost."""
MOST_ASSUMED = 0.5
"""Of what is lost: more was measured where others used the machine at just that time. Guesses that looked too dear for
it would not be tried, and nothing would say that they are not."""
TOO_DEAR = 5.0
"""A pass that costs so many plain ones can hardly pay: larger ones are not timed."""
WATCHED = 2.5
"""Passes up to so many plain ones are timed again now and then; of the others, what steps say is enough."""


class PlainPassCost:
    """The time of a pass of one token: the least of the latest measurements in each stretch of cache lengths.

    The least, because whatever else the machine does can only make a pass slower, and a speedup that is measured
    against too slow a plain pass would be flattery.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._samples: dict[int, deque[float]] = {}
        self._compiled = compiled_sizes(runner)
        self._allowance = 0.0

    def refresh(self, decoded_seconds: float = 0.0) -> float:
        """Time plain passes at the present cache length: a few where none was timed yet, else one where it is due.

        The cache stays as it is. A model that takes one slot a pass is not asked: its steps are plain passes, and what
        one has changed cannot be undone. One slot of the context must be free: call it before a step, not after the
        last.

        Args:
            decoded_seconds: the time that steps have taken since the last call.

        Returns:
            The seconds that this took.
        """
        if self._runner.plain_only is not None:
            return 0.0
        if self._compiled != compiled_sizes(self._runner):  # what was timed before says nothing any more
            self._compiled = compiled_sizes(self._runner)
            self._samples.clear()
        cache_length = len(self._runner.tokens)
        self._allowance += BUDGET * decoded_seconds
        known = self.milliseconds(cache_length)
        if known is None:
            return sum(self._probe(cache_length) for _ in range(FIRST_PROBES))
        if 1000 * self._allowance < known:
            return 0.0
        took = self._probe(cache_length)
        self._allowance -= took
        return took

    def _probe(self, cache_length: int) -> float:
        started = time.perf_counter()
        self._runner.read(self._runner.forward(causal_layout([0])))
        seconds = time.perf_counter() - started
        self._runner.keep([])
        self.observe(cache_length, seconds)
        return seconds

    def observe(self, cache_length: int, seconds: float) -> None:
        """Take in a plain pass that was timed anyway."""
        self._samples.setdefault(cache_length // REACH, deque(maxlen=KEPT_SAMPLES)).append(seconds)

    def milliseconds(self, cache_length: int) -> float | None:
        """The time of a plain pass at this cache length, in milliseconds; None before it was measured."""
        samples = self._samples.get(cache_length // REACH)
        return 1000 * min(samples) if samples else None


class PassCosts:
    """What passes of several sizes cost on a runner: measured once, then corrected by steps and by a probe at times.

    Args:
        runner: whose passes they are.
        file: where they are kept from session to session; None measures them in each.
    """

    def __init__(self, runner: Runner, file: Path | None = None) -> None:
        self._runner = runner
        self._file = file
        self._sizes: list[int] = []
        self._seconds: dict[int, float] = {}
        self._compiled: list[int] = []
        self._unseen: set[int] = set()
        self._allowance = self._measured_for = 0.0
        self._turn = self._rounds_left = 0
        self._lost = 0.0
        self._losses: list[float] = []
        self._in_cache = False
        """Whether plain passes were so short, when they were measured, that they live on the processor's cache."""
        self.timed_seconds = 0.0
        """What all passes have taken so far that only were to be timed."""

    @property
    def lost(self) -> float | None:
        """The seconds that plain passes lose for each one of something else before them, as far as was measured, and at
        most `MOST_ASSUMED`; None where they take so long that they lose none, and before anything was measured.

        They read all weights anew, and meanwhile the processor's cache has lost some of them, to others who share it.
        """
        return self._lost if self._in_cache else None

    @property
    def measured(self) -> bool:
        """Whether `refresh` has measured anything yet."""
        return bool(self._seconds)

    def known(self) -> dict[int, float]:
        """The seconds of passes by their slots, the sizes that are measured."""
        return {size: self._seconds[size] for size in self._sizes}

    def __call__(self, slots: int) -> float:
        """Seconds of a pass of so many slots: in between the sizes that were measured, in proportion beyond them."""
        if slots == 1:  # asked for at every step
            return self._seconds[1]
        return sum(part * self._seconds[size] for size, part in self._parts(slots))

    def refresh(self, rounds: int = FIRST_PROBES) -> bool:
        """Time passes of all sizes, if that was not done or if others of them are compiled by now; else one, if due.

        That takes `MEASURED_SECONDS` or little more in all, but never fewer than two sizes; later ones `BUDGET` of the
        time of the steps, or `BUDGET_OF_KNOWN`. The cache stays as it is; one slot of the context must be free.

        Args:
            rounds: how often all sizes are timed now, at most: between two steps there is no time for all rounds.

        Returns:
            Whether all sizes are new.
        """
        if not self._seconds or self._compiled != compiled_sizes(self._runner):
            passes = getattr(self._runner, "compiled", None)
            if passes is not None:
                passes.prepare()
            self._compiled = compiled_sizes(self._runner)
            self._begin()
            kept = read_costs(self._file, self._compiled) if self._file else None
            if kept is not None:
                self._seconds, self._lost = kept.seconds, min(kept.lost, MOST_ASSUMED)
                self._in_cache = self._seconds[1] < IN_CACHE_SECONDS
                self._sizes, self._unseen, self._rounds_left = sorted(kept.seconds), set(kept.seconds), 0
                return True
        if self._rounds_left:
            while rounds > 0 and self._rounds_left:
                self._measure_once()
                rounds -= 1
            return True
        size = self._sizes[self._turn % len(self._sizes)]
        dear = self._seconds[size] > WATCHED * self._seconds[1] and size not in self._unseen
        if dear or size > self._runner.reach:
            self._turn += 1
        elif self._allowance > self._seconds[size]:
            self._turn += 1
            self._allowance -= self._seconds[size]
            self._unseen.discard(size)
            self.observe(size, self._time(size))
        return False

    def observe(self, slots: int, *seconds: float) -> None:
        """Take in passes of one size that were timed anyway."""
        self._allowance += (BUDGET if self._unseen else BUDGET_OF_KNOWN) * sum(seconds)
        if slots == 1:
            self._scale(seconds)
        elif slots <= self._sizes[-1]:
            for one in seconds:
                self._correct(slots, one)

    def _parts(self, slots: int) -> list[tuple[int, float]]:
        """Of which measured sizes, and of how much of each, the cost of a pass is made up."""
        # A compiled pass has one of a few sizes, and what is smaller is filled up.
        if slots > 1:
            slots = next((size for size in self._compiled if size >= slots), slots)
        index = bisect_left(self._sizes, slots)
        if index == len(self._sizes):
            return [(self._sizes[-1], slots / self._sizes[-1])]
        high = self._sizes[index]
        if high == slots or index == 0:
            return [(high, 1.0)]
        low = self._sizes[index - 1]
        part = (slots - low) / (high - low)
        return [(low, 1 - part), (high, part)]

    def _scale(self, passes: Sequence[float]) -> None:
        """Where plain passes take longer than they did, or less, so do all others.

        If the machine has changed its speed, by the same factor. Passes that live on the processor's cache mostly take
        longer because others have taken it: then what they lack there has to be fetched once, for however many slots.
        A large pass that looked too dear for that would not be tried, and nothing would say what it takes.
        """
        usual = self._seconds[1]
        mean = sum(min(one, AT_MOST * usual) for one in passes) / len(passes)
        longer = (mean - usual) * (1 - (1 - 1 / KEPT_SAMPLES) ** len(passes))
        for size in self._sizes:
            of_size = longer if self._in_cache else longer * self._seconds[size] / usual
            # What was measured in a slow moment may have had little between its sizes; none is below that of one slot.
            self._seconds[size] = max(self._seconds[size] + of_size, usual + longer)

    def _correct(self, slots: int, seconds: float) -> None:
        """What a pass says of the sizes beside it. Of plain ones only those themselves say anything."""
        parts = self._parts(slots)
        beyond = min(seconds / sum(part * self._seconds[size] for size, part in parts), AT_MOST) - 1
        for size, part in parts:
            if size > 1:
                self._seconds[size] *= 1 + beyond * part / KEPT_SAMPLES

    def measure(self) -> None:
        """Time all sizes, round after round: what else the machine does for a moment shall spoil no size alone.

        The cache stays as it is; one slot of the context must be free.
        """
        self._begin()
        while self._rounds_left:
            self._measure_once()

    def _begin(self) -> None:
        self._sizes, self._seconds, self._lost, self._losses = [], {}, 0.0, []
        self._rounds_left, self._measured_for = FIRST_PROBES, 0.0

    def _measure_once(self) -> None:
        """Time all sizes once more."""
        first, self._rounds_left = not self._sizes, self._rounds_left - 1
        for size in self._wanted() if first else self._sizes:
            if len(self._seconds) > 1 and self._measured_for > MEASURED_SECONDS:
                self._rounds_left = 0
                break
            dear = any(self._seconds[one] > TOO_DEAR * self._seconds[1] for one in self._sizes if one <= size)
            if first and dear:
                continue
            taken = [self._time(size)]
            while sum(taken) < SETTLED_SECONDS:
                taken.append(self._time(size))
            self._measured_for += sum(taken)
            self._seconds[size] = min(*taken, self._seconds.get(size, math.inf))
            self._sizes = sorted(self._seconds)
        self._in_cache = self._seconds[1] < IN_CACHE_SECONDS
        if self._in_cache and self._measured_for <= MEASURED_SECONDS:
            self._measure_lost()
        if not self._rounds_left and self._file is not None:
            write_costs(self._file, self._compiled, Kept(self._seconds, self._lost))

    def _measure_lost(self) -> None:
        before = [self._time(1) for _ in range(2 * SETTLING)]
        settled = fmean(before[SETTLING:])
        other = self._time(max(size for size in self._sizes if size <= DISTURBING))
        behind = [self._time(1) for _ in range(SETTLING)]
        self._measured_for += sum(before) + other + sum(behind)
        if other > TELLING * settled:
            self._losses.append((sum(behind) - SETTLING * settled) / (other - settled))
            self._lost = min(max(0.0, median(self._losses)), MOST_ASSUMED)

    def _wanted(self) -> list[int]:
        """The sizes worth timing: those that the context has room for, and that are not filled up to another."""
        filled_up = [
            size for size in SIZES if self._compiled and size < self._compiled[-1] and size not in self._compiled
        ]
        return [size for size in SIZES if size <= self._runner.reach and (size == 1 or size not in filled_up)]

    def _time(self, slots: int) -> float:
        started = time.perf_counter()
        self._runner.read(self._runner.forward(causal_layout([0] * slots)))
        seconds = time.perf_counter() - started
        self._runner.keep([])
        self.timed_seconds += seconds
        return seconds


def compiled_sizes(runner: Runner) -> list[int]:
    """The sizes of the compiled passes that a runner uses."""
    compiled = getattr(runner, "compiled", None)
    return [] if compiled is None else list(compiled.sizes)
