"""What the adaptive policy decided for one pass, and why: so that a screen can say it in words."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


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


class Decision(NamedTuple):
    """One decision.

    Attributes:
        why: see `Why`.
        tokens: expected of the pass; what the window's own branches bring is not foreseen.
        cost: of the pass with what is done around it and what pseudo rows take, in plain passes.
        expected: the tokens of such a pass of 1, 2, 4, 8 … slots.
    """

    why: Why
    tokens: float
    cost: float
    expected: Sequence[float] = ()


UNDRAFTED = Decision(Why.PAUSED, 1.0, 1.0)
