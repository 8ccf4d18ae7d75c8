"""Lookahead decoding whose W, N and G follow what they yield."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ladechat.decoder.aside import Observed, Rested
from ladechat.decoder.lookahead import LookaheadDecoder, LookaheadSettings
from ladechat.decoder.ngram_pool import Guess
from ladechat.decoder.picker import NO_REST, NO_RIDE, NOTHING, Pick, Pool, Rest, RestPlan, Ridden, RidePlan
from ladechat.decoder.selection import Selector
from ladechat.decoder.step import Limits, Step
from ladechat.decoder.tuner import Tuner

REFRESHED = 16
"""After so many steps it is asked whether what passes cost should be measured again."""


class Costs(Protocol):
    """What passes cost on a runner."""

    @property
    def measured(self) -> bool:
        """Whether it knows anything yet."""
        ...

    @property
    def lost(self) -> float | None:
        """The seconds that plain passes lose for each one of something else before them, None where they lose none."""
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

    def observe(self, slots: int, *seconds: float) -> None:
        """Take in passes of one size that were timed anyway."""
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
        self.tuner = tuner or Tuner(costs, lambda: costs.lost)
        self._costs = costs
        self._unrefreshed = 0
        self._asked_at: float | None = None
        self._rested_at: float | None = None
        self._followed: tuple[LookaheadSettings, LookaheadSettings] | None = None
        """The decoder's settings as they were left, and what the tuner had chosen: both are mostly the same again."""

    def run(
        self, prompt: Sequence[int], limits: Limits, selector: Selector | None = None, generated: int = 0
    ) -> Iterator[Step]:
        """See `ladechat.decoder.step.Decoder.run`."""
        self.tuner.begin()
        self._rested_at = None  # the last answer may have ended in a rest
        self._follow()
        steps = self.lookahead.run(prompt, limits, selector, generated, self)
        try:
            for step in steps:
                if self._asked_at is not None:
                    self._take_in(self.tuner.observe(step, time.perf_counter() - self._asked_at))
                    self._unrefreshed += 1
                yield step
        finally:  # also where the text is stopped, or a pass has failed
            steps.close()  # a rest that it ends in is told
            self._take_in(self.tuner.end())

    def rests(self, pool: Pool) -> RestPlan:
        """See `ladechat.decoder.picker.Picker`."""
        if self._rested_at is not None and self._costs.measured:
            self.tuner.took_behind(time.perf_counter() - self._rested_at)
        self._rested_at = None
        if self._unrefreshed >= (REFRESHED if self._costs.measured else 1):
            self._unrefreshed = 0
            if self._costs.refresh(rounds=1):
                self.tuner.forget_times()
        now = time.perf_counter()
        self._follow()
        plan = self._chosen_rest(pool)
        self._asked_at = None if plan.steps else now
        return plan

    def rested(self, rest: Rest, pool: Pool) -> None:
        """See `ladechat.decoder.picker.Picker`."""
        self._rested_at = time.perf_counter()
        self._unrefreshed += len(rest.passes)
        if self._costs.measured:
            self._take_in(self.tuner.rested(rest, pool))

    def rides(self) -> RidePlan:
        """See `ladechat.decoder.picker.Picker`."""
        plan = self.tuner.rides() if self._costs.measured else NO_RIDE
        if plan.steps:
            self._asked_at = None
        return plan

    def rode(self, ridden: Sequence[Ridden]) -> None:
        """See `ladechat.decoder.picker.Picker`."""
        self._unrefreshed += len(ridden)
        began = time.perf_counter()
        self._take_in(self.tuner.rode(ridden))
        self.tuner.rode_behind(time.perf_counter() - began)

    def most(self) -> int:
        """See `ladechat.decoder.picker.Picker`."""
        return self.tuner.most()

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """See `ladechat.decoder.picker.Picker`."""
        return self.tuner.pick(guesses) if self._costs.measured else NOTHING

    def _chosen_rest(self, pool: Pool) -> RestPlan:
        if not self._costs.measured:
            return RestPlan(1)
        return NO_REST if self.lookahead.settings.window else self.tuner.rests(pool)

    def _take_in(self, learnt: Sequence[Observed | Rested]) -> None:
        """What passes cost is learnt from the same steps."""
        for one in learnt:
            self._costs.observe(one.slots, *one.passes)

    def _follow(self) -> None:
        """Decode with what the tuner has chosen, also where other settings were assigned from outside."""
        assigned, chosen = self.lookahead.settings, self.tuner.settings
        if (assigned, chosen) != self._followed:
            wanted = replace(chosen, pool_prompt=assigned.pool_prompt, pool_accepted=assigned.pool_accepted)
            if wanted != assigned:
                self.lookahead.settings = wanted  # a new object ends a rest
            self._followed = wanted, chosen
