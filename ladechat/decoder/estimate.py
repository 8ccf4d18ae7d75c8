"""What settings are expected to do, and what tokens took of late without a window."""

from typing import NamedTuple

from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.means import Mean

REMEMBERED = 200
"""Older tokens count less and less: a text changes."""


class Estimate(NamedTuple):
    """What is expected of settings, and what may be hoped for. `known`: not a window that was not tried of late."""

    settings: LookaheadSettings
    slots: float
    tokens_per_step: float
    seconds_per_step: float
    known: bool
    tokens_at_best: float

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return self.tokens_per_step / self.seconds_per_step

    @property
    def rate_at_best(self) -> float:
        """Tokens per second that may yet be hoped for."""
        return self.tokens_at_best / self.seconds_per_step


class WithoutWindow:
    """What a token takes without a window: the part of a step; the time, as a part of that of a plain step, for a
    machine is not equally fast all the time; and the slots of a pass.
    """

    def __init__(self) -> None:
        self.steps, self.slots = Mean(REMEMBERED), Mean(REMEMBERED)
        self.forget_times()

    def forget_times(self) -> None:
        """What passes cost has changed: only tokens and slots are still known."""
        self.share = Mean(REMEMBERED)

    def add(self, tokens: int, share: float, slots: int) -> None:
        """Take in a step: its tokens, its time as a part of that of a plain one, and the slots of its pass."""
        self.steps.add(1 / tokens, tokens)
        self.share.add(share / tokens, tokens)
        self.slots.add(slots)

    def add_plain(self, steps: int) -> None:
        """So many steps of plain decoding."""
        for mean in (self.steps, self.share, self.slots):
            mean.add(1.0, steps)
