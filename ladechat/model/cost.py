"""What a plain pass costs here, measured: the yardstick of an estimated speedup."""

import statistics
import time
from collections import deque

from ladechat.decoder.verify_mask import causal_layout
from ladechat.model.eager import EagerRunner

REACH = 256
"""A measurement speaks for cache lengths in the same stretch of this many tokens."""

PROBES = 3
KEPT_SAMPLES = 15


class PlainPassCost:
    """The time of a pass of one token, by cache length: the median of what was measured in each stretch of lengths."""

    def __init__(self, runner: EagerRunner) -> None:
        self._runner = runner
        self._samples: dict[int, deque[float]] = {}

    def refresh(self) -> None:
        """Time a few plain passes at the present cache length, where none was timed yet. The cache stays as it is.

        One slot of the context must be free: call it before a step, not after the last.
        """
        cache_length = len(self._runner.tokens)
        if cache_length // REACH in self._samples:
            return
        layout = causal_layout([0])
        for _ in range(PROBES):
            started = time.perf_counter()
            int(self._runner.forward(layout)[0].argmax())
            self.observe(cache_length, time.perf_counter() - started)
            self._runner.keep([])

    def observe(self, cache_length: int, seconds: float) -> None:
        """Take in a plain pass that was timed anyway."""
        self._samples.setdefault(cache_length // REACH, deque(maxlen=KEPT_SAMPLES)).append(seconds)

    def milliseconds(self, cache_length: int) -> float | None:
        """The median time of a plain pass at this cache length, in milliseconds; None before it was measured."""
        samples = self._samples.get(cache_length // REACH)
        return 1000 * statistics.median(samples) if samples else None
