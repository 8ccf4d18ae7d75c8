"""What panels show of the adaptive policy: what it forecasts for a pass and why, and means over the latest passes."""

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from ladechat.protocol import Decision, ExpectedTokens, PassCost, PolicyChoice
from ladechat.tuning.adaptive import MAX_DRAFTS, Forecast
from ladechat.tuning.running_mean import RunningMean

MEMORY = 30
"""Means are of about so many steps."""
DECISION_SLOTS = np.array([1, 2, 4, 8, 16, 32, 64])
"""Pass sizes for which a decision lists expected tokens."""


class Why(StrEnum):
    """Why a pass has the slots that it has."""

    PAUSED = "paused"
    """Drafting has not paid for a while, so nobody was asked for drafts. One slot."""

    NONE = "none"
    """No draft at hand is expected to be worth its slot. One slot."""

    PAYS = "pays"
    """The drafts are expected to bring more tokens than the pass costs plain ones."""

    TRIAL = "trial"
    """They are not; after eight such passes drafting pauses, and one or two follow each pause, to measure again."""

    WINDOW = "window"
    """The Jacobi window is in the pass in any case, and what drafts bring besides would not pay for it alone."""


def why(forecast: Forecast) -> Why:
    """Say why a pass has its slots."""
    if not forecast.drafting:
        return Why.PAUSED
    if forecast.slots == 1:
        return Why.NONE
    if forecast.pays:
        return Why.PAYS
    return Why.TRIAL if forecast.least == 1 else Why.WINDOW


def decision_of(forecast: Forecast) -> Decision:
    """Return a forecast as it is shown; what the window's own branches bring is not foreseen."""
    expected = forecast.by_slots()[DECISION_SLOTS - 1].tolist() if forecast.drafting else []
    rounded = [round(tokens, 3) for tokens in expected]
    return Decision(
        why=why(forecast).value, tokens=round(forecast.tokens, 3), cost=round(forecast.cost, 3), expected=rounded
    )


class PolicyView:
    """Means over the latest forecasts.

    Args:
        known: the seconds of passes by their slots, as they are known now.
    """

    def __init__(self, known: Callable[[], dict[int, float]]) -> None:
        self._known = known
        self._slots, self._tokens = RunningMean(MEMORY, 1.0), RunningMean(MEMORY, 1.0)
        self._overhead = RunningMean(MEMORY, 0.0)
        self._by_slots = RunningMean(MEMORY, np.ones(MAX_DRAFTS + 1))

    def observe(self, forecast: Forecast) -> None:
        """Take in the forecast of a step, once the step is over."""
        if forecast.drafting:
            self._slots.add(forecast.slots)
            self._tokens.add(forecast.tokens)
            self._overhead.add(forecast.overhead)
            self._by_slots.add(forecast.by_slots())

    def choice(self, turn: int, window: bool) -> PolicyChoice:
        """Return the means as an event; `window` says that a Jacobi window is in each pass."""
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
