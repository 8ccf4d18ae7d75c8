"""Lookahead decoding whose W, N and G follow what they yield."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ladechat.decoder.guess_worth import NOTHING, Pick
from ladechat.decoder.lookahead import LookaheadDecoder
from ladechat.decoder.ngram_pool import Guess
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Step
from ladechat.decoder.tuner import Tuner


class Costs(Protocol):
    """What passes cost on a runner."""

    @property
    def measured(self) -> bool:
        """Whether it knows anything yet."""
        ...

    def __call__(self, slots: int) -> float:
        """The seconds of a pass of so many slots, as far as is known."""
        ...

    def refresh(self, rounds: int) -> bool:
        """Measure what is not known yet. Called between two steps, with one slot of the context free at least.

        Args:
            rounds: how often all is measured now, at most; the next calls do the rest.

        Returns:
            Whether all is new, so that what was timed before does not compare with it.
        """
        ...

    def observe(self, slots: int, seconds: float) -> None:
        """Take in a pass that was timed anyway."""
        ...


class TunedDecoder:
    """A lookahead decoder, set anew between its steps. It shares its pool, and its other settings stay.

    Args:
        lookahead: the decoder.
        costs: of the passes of its runner.
        tuner: what has been learnt so far; by default nothing.
    """

    def __init__(self, lookahead: LookaheadDecoder, costs: Costs, tuner: Tuner | None = None) -> None:
        self.lookahead = lookahead
        self.tuner = tuner or Tuner(costs)
        self._costs = costs
        self._picked = False

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        self.tuner.begin()
        self._picked = False
        self._follow()
        started = None  # the first step takes the prompt's time too
        for step in self.lookahead.run(prompt, limits, selector, generated, self):
            seconds = step.forward_seconds if started is None else time.perf_counter() - started
            if self._costs.measured:
                self._costs.observe(step.slots, step.forward_seconds)
                if not self._picked:
                    self.tuner.rested(step, seconds)
                    yield step
                    started = time.perf_counter()
                    continue
                self.tuner.observe(step, seconds)
                self._picked = False
            yield step
            if self._costs.refresh(rounds=1):
                self.tuner.forget_times()
            self._follow()
            started = time.perf_counter()

    def context(self) -> int:
        """See `ladechat.decoder.lookahead.Picker`."""
        return self.tuner.context() if self._costs.measured else 0

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """See `ladechat.decoder.lookahead.Picker`."""
        self._picked = self._costs.measured
        return self.tuner.pick(guesses) if self._picked else NOTHING

    def _follow(self) -> None:
        own, chosen = self.lookahead.settings, self.tuner.settings
        if (own.window, own.ngram, own.guesses) != (chosen.window, chosen.ngram, chosen.guesses):
            self.lookahead.settings = replace(own, window=chosen.window, ngram=chosen.ngram, guesses=chosen.guesses)
