"""The adaptive policy as panels show it: its forecast for a pass and the reason, and means over the latest passes."""

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from ladechat.protocol import Decision, ExpectedTokens, PassCost, PolicyChoice
from ladechat.tuning.adaptive import MAX_DRAFTS, Forecast
from ladechat.tuning.learning import RunningMean

MEMORY = 30
"""Means cover about this many steps."""
DECISION_SLOTS = np.array([1, 2, 4, 8, 16, 32, 64])
"""Pass sizes for which a decision lists expected tokens."""


class Why(StrEnum):
    """The reason for the number of slots of a pass."""

    PAUSED = "paused"
    """Drafting has not paid for a while, so only drafters that take no time were asked, and found nothing. One slot."""

    NONE = "none"
    """No available draft is expected to be worth its slot. One slot."""

    PAYS = "pays"
    """The drafts are expected to bring more tokens than plain passes would in the same time."""

    TRIAL = "trial"
    """They are not. After eight such passes drafting pauses; one or two follow each pause, to measure again."""

    WINDOW = "window"
    """The Jacobi window is in the pass in any case; the tokens that drafts add would not pay for the pass alone."""


def why(forecast: Forecast) -> Why:
    """Return the reason for the number of slots of a pass."""
    if not forecast.drafting:
        return Why.PAUSED
    if forecast.slots == 1:
        return Why.NONE
    if forecast.pays:
        return Why.PAYS
    return Why.TRIAL if forecast.least == 1 else Why.WINDOW


def decision_of(forecast: Forecast) -> Decision:
    """Return a forecast as a `Decision`; tokens from the window's own branches are not foreseen."""
    expected = forecast.by_slots()[DECISION_SLOTS - 1].tolist() if forecast.drafting else []
    rounded = [round(tokens, 3) for tokens in expected]
    return Decision(
        why=why(forecast).value, tokens=round(forecast.tokens, 3), cost=round(forecast.cost, 3), expected=rounded
    )


class PolicyView:
    """Means over the latest forecasts. `known` returns the seconds of a pass by its number of slots, as known now."""

    def __init__(self, known: Callable[[], dict[int, float]]) -> None:
        self._known = known
        self._slots, self._tokens = RunningMean(MEMORY, 1.0), RunningMean(MEMORY, 1.0)
        self._overhead = RunningMean(MEMORY, 0.0)
        self._by_slots = RunningMean(MEMORY, np.ones(MAX_DRAFTS + 1))

    def observe(self, forecast: Forecast) -> None:
        """Record the forecast of a step, once the step is over."""
        if forecast.drafting:
            self._slots.add(forecast.slots)
            self._tokens.add(forecast.tokens)
            self._overhead.add(forecast.overhead)
            self._by_slots.add(forecast.by_slots())

    def choice(self, turn: int, window: bool) -> PolicyChoice:
        """Return the means as an event; `window`: whether a Jacobi window is in each pass."""
        known = self._known()
        overhead, tokens = self._overhead.value, self._by_slots.value
        return PolicyChoice(
            turn=turn,
            slots=round(self._slots.value, 2),
            tokens=round(self._tokens.value, 3),
            window=window,
            costs=[
                PassCost(slots=size, ms=round(1000 * (seconds + (overhead if size > 1 else 0.0)), 3))
                for size, seconds in known.items()
            ],
            expected=[
                ExpectedTokens(slots=size, tokens=round(float(tokens[size - 1]), 3))
                for size in known
                if size <= len(tokens)
            ],
        )
