"""What a plain pass costs here, measured: the yardstick of an estimated speedup."""

import time
from collections import deque

from ladechat.decoder.runner import Runner
from ladechat.decoder.verify_mask import causal_layout

REACH = 256
"""A measurement speaks for cache lengths in the same stretch of this many tokens."""

FIRST_PROBES = 3
KEPT_SAMPLES = 7
BUDGET = 0.01
"""The share of the decoding time that further probes may take: conditions change while an answer runs."""


class PlainPassCost:
    """The time of a pass of one token: the least of the latest measurements in each stretch of cache lengths.

    The least, because whatever else the machine does can only make a pass slower, and a speedup that is measured
    against too slow a plain pass would be flattery.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._samples: dict[int, deque[float]] = {}
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
        int(self._runner.forward(causal_layout([0]))[0].argmax())
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
