"""Lookahead decoding whose W, N and G follow what they yield."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ladechat.decoder.guess_worth import ALWAYS, NOTHING, Pick, Wants
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
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

    def observe(self, slots: int, seconds: float, passes: int = 1) -> None:
        """Take in a pass that was timed anyway, or so many of that size, which took so long on average."""
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
        self._began: float | None = None
        self._rested: list[float] = []

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        self.tuner.begin()
        self._picked = False
        self._began = None
        settings = self._follow()
        for step in self.lookahead.run(prompt, limits, selector, generated, self):
            taken = self._observe(step) if self._costs.measured else True
            yield step
            if taken:
                if self._costs.refresh(rounds=1):
                    self.tuner.forget_times()
                settings = self._follow()
            elif self.lookahead.settings is not settings:  # assigned from outside
                settings = self._follow()
            self._began = time.perf_counter()

    def _observe(self, step: Step) -> bool:
        """Have all learn from a step. Whether that was done at once: what did not ask the pool is put aside first."""
        now = time.perf_counter()
        # The first step begins when it is asked what it should do: before that the prompt is read.
        seconds = now - (self._began or now)
        if self._picked:
            self._picked = False
            self._costs.observe(step.slots, step.forward_seconds)
            self.tuner.observe(step, seconds)
        else:
            self._rested.append(step.forward_seconds)
            if not self.tuner.rested(step, seconds):
                return False
        if self._rested:
            self._costs.observe(1, sum(self._rested) / len(self._rested), len(self._rested))
            self._rested.clear()
        return True

    def wants(self) -> Wants:
        """See `ladechat.decoder.lookahead.Picker`."""
        self._begin()
        return self.tuner.wants() if self._costs.measured else ALWAYS

    def most(self) -> int:
        """See `ladechat.decoder.lookahead.Picker`."""
        self._begin()
        return self.tuner.most() if self._costs.measured else 0

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """See `ladechat.decoder.lookahead.Picker`."""
        self._picked = self._costs.measured
        return self.tuner.pick(guesses) if self._picked else NOTHING

    def _begin(self) -> None:
        if self._began is None:
            self._began = time.perf_counter()

    def _follow(self) -> LookaheadSettings:
        own, chosen = self.lookahead.settings, self.tuner.settings
        if (own.window, own.ngram, own.guesses) != (chosen.window, chosen.ngram, chosen.guesses):
            self.lookahead.settings = replace(own, window=chosen.window, ngram=chosen.ngram, guesses=chosen.guesses)
        return self.lookahead.settings
