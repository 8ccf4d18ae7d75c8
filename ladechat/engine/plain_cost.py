"""The time of a plain step on this machine: the reference for the estimated speedup."""

from collections import deque
from statistics import fmean

from ladechat.decoder.runner import Runner
from ladechat.tuning.costs import timed_pass
from ladechat.tuning.learning import RunningMean

STRETCH = 256
"""Cache lengths in the same stretch of this many tokens share a measurement."""
FIRST_PROBES = 3
"""Plain passes timed in an answer before the budget counts: one before its first step, the others as it goes on."""
MOST_SAMPLES = 15
BRIEF_SECONDS = 0.005
"""A pass this brief is timed again: the first one finds the weights pushed out of the processor's caches by what came
between, and in plain decoding little comes between."""
ENGINE_MEMORY = 50
"""The mean overhead covers about this many plain steps: several steps are emitted together."""
BUDGET, BUDGET_OF_A_COMPARISON = 0.01, 0.1
"""The share of the decoding time that further probes may take: conditions change during an answer. The second is for
answers that are short and decoded to be compared: those of a lesson or a race."""


class PlainStepCost:
    """The time of a step of one token: a pass (the mean of this answer's latest ones in a stretch of cache lengths) and
    the engine's overhead for a plain step (also a mean, over all answers; 0 before the first). Drafting is left out,
    and so is what the engine does to show window, pool or tree: plain decoding has none.

    Passes are those of this answer alone, spread over it: what disturbed the machine then slowed its other passes too.
    Means, because it is compared with the sum of all steps, which includes every disturbance by the machine.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._samples: dict[int, deque[float]] = {}
        self._allowance, self._budget = 0.0, BUDGET
        self._engine = RunningMean(ENGINE_MEMORY, 0.0)

    def begin_answer(self, *, compared: bool) -> None:
        """Forget the passes of earlier answers; `compared` allows more probes in this one."""
        self._samples.clear()
        self._allowance, self._budget = 0.0, BUDGET_OF_A_COMPARISON if compared else BUDGET

    def refresh(self, decoded_seconds: float = 0.0) -> float:
        """Time a plain pass at the present cache length, if fewer than a few were timed there yet or one is due, by the
        time of the steps since the last call.

        The cache stays as it is. A model that takes one token a pass is skipped: its steps are plain passes anyway, and
        a pass cannot be undone. One slot of the context must be free: call this before a step, not after the last.

        Returns:
            The seconds that the probe took.
        """
        if not self._runner.capabilities.tree_attention:
            return 0.0
        cache_length = len(self._runner.tokens)
        self._allowance += self._budget * decoded_seconds
        known = self.milliseconds(cache_length)
        if known is None or len(self._samples[cache_length // STRETCH]) < FIRST_PROBES:
            return self._probe(cache_length)
        if 1000 * self._allowance < known:
            return 0.0
        took = self._probe(cache_length)
        self._allowance -= took
        return took

    def _probe(self, cache_length: int) -> float:
        took = seconds = timed_pass(self._runner, 1)
        if seconds < BRIEF_SECONDS:
            seconds = timed_pass(self._runner, 1)
            took += seconds
        self._add(cache_length, seconds)
        return took

    def observe(self, cache_length: int, seconds: float, overhead: float) -> None:
        """Record a plain step of the decoder: its pass, and what the engine did around it."""
        self._add(cache_length, seconds)
        self._engine.add(overhead)

    def _add(self, cache_length: int, seconds: float) -> None:
        self._samples.setdefault(cache_length // STRETCH, deque(maxlen=MOST_SAMPLES)).append(seconds)

    def milliseconds(self, cache_length: int) -> float | None:
        """Return the time of a plain step at this cache length, in milliseconds; None if no pass was measured there."""
        samples = self._samples.get(cache_length // STRETCH)
        return 1000 * (fmean(samples) + self._engine.value) if samples else None
