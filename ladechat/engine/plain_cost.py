"""What a plain step costs here: the yardstick of the estimated speedup."""

import time
from collections import deque
from statistics import fmean

from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import SlotTree
from ladechat.tuning.running_mean import RunningMean

STRETCH = 256
"""A measurement speaks for cache lengths in the same stretch of this many tokens."""
FIRST_PROBES = 3
KEPT_SAMPLES = 15
ENGINE_MEMORY = 50
"""The mean covers about this many steps: several steps are emitted together."""
BUDGET = 0.01
"""The share of the decoding time that further probes may take: conditions change while an answer runs."""


class PlainStepCost:
    """The time of a step of one token: a pass, the mean of the latest in a stretch of cache lengths, and what the
    engine does for each step besides, also a mean. What decoders do between two passes is not in it: a plain one does
    nothing there.

    Means, because it is compared with the sum of steps as they come, with all that the machine does meanwhile.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._samples: dict[int, deque[float]] = {}
        self._allowance = 0.0
        self._engine = RunningMean(ENGINE_MEMORY, 0.0)

    def refresh(self, decoded_seconds: float = 0.0) -> float:
        """Time plain passes at the present cache length: a few where none was timed yet, else one where it is due.

        The cache stays as it is. A model that takes one token a pass is not asked: its steps are plain passes, and what
        one has changed cannot be undone. One slot of the context must be free: call it before a step, not after the
        last.

        Args:
            decoded_seconds: the time that steps have taken since the last call.

        Returns:
            The seconds that this took.
        """
        if not self._runner.capabilities.tree_attention:
            return 0.0
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
        self._runner.argmax(self._runner.forward(SlotTree(0)))
        seconds = time.perf_counter() - started
        self._runner.commit([])
        self.observe(cache_length, seconds)
        return seconds

    def observe(self, cache_length: int, seconds: float) -> None:
        """Take in a plain pass that was timed anyway."""
        self._samples.setdefault(cache_length // STRETCH, deque(maxlen=KEPT_SAMPLES)).append(seconds)

    def observe_engine(self, seconds: float) -> None:
        """Take in what the engine did for a step: to emit it, to look for commands."""
        self._engine.add(seconds)

    def milliseconds(self, cache_length: int) -> float | None:
        """The time of a plain step at this cache length, in milliseconds; None before a pass was measured."""
        samples = self._samples.get(cache_length // STRETCH)
        return 1000 * (fmean(samples) + self._engine.value) if samples else None
