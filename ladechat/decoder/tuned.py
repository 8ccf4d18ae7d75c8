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
from ladechat.decoder.tuner import Observed, Tuner


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
        self._began: float | None = None

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        self._take_in(self.tuner.begin())
        self._began = None
        settings = self._follow()
        for step in self.lookahead.run(prompt, limits, selector, generated, self):
            now = time.perf_counter()
            # The first step begins when it is asked what it should do: before that the prompt is read.
            seconds = now - (self._began or now)
            learnt = not self._costs.measured or self._take_in(self.tuner.observe(step, seconds))
            yield step
            if learnt:
                if self._costs.refresh(rounds=1):
                    self.tuner.forget_times()
                settings = self._follow()
            elif self.lookahead.settings is not settings:  # assigned from outside
                settings = self._follow()
            self._began = time.perf_counter()

    def _take_in(self, learnt: Sequence[Observed]) -> bool:
        """What passes cost is learnt from the same steps. Whether there are any: most are put aside for a while."""
        for one in learnt:
            self._costs.observe(one.step.slots, one.step.forward_seconds)
        return bool(learnt)

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
        return self.tuner.pick(guesses) if self._costs.measured else NOTHING

    def _begin(self) -> None:
        if self._began is None:
            self._began = time.perf_counter()

    def _follow(self) -> LookaheadSettings:
        own, chosen = self.lookahead.settings, self.tuner.settings
        if (own.window, own.ngram, own.guesses) != (chosen.window, chosen.ngram, chosen.guesses):
            self.lookahead.settings = replace(own, window=chosen.window, ngram=chosen.ngram, guesses=chosen.guesses)
        return self.lookahead.settings
