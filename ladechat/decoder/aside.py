"""What was observed and is not learnt from yet.

Several steps are learnt from together: one by one that takes longer, for after a pass nothing of this is in the
processor's cache.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ladechat.decoder.guess_worth import Offer
from ladechat.decoder.ngram_pool import Tail
from ladechat.decoder.picker import Rest
from ladechat.decoder.step import Step

TOGETHER, RESTED_TOGETHER = 16, 64
"""So many steps that asked the pool are learnt from together, or so many that did not; fewer at first."""
TOGETHER_SECONDS = 0.1
"""Steps that take longer than this together are learnt from, however few they are."""


class Observed(NamedTuple):
    """A step that asked the pool, the seconds that it took in all, and what it was offered.

    With a window, `instead` is what would have been verified without it; `ridden` says that nobody had picked.
    """

    step: Step
    seconds: float
    offer: Offer
    instead: Sequence[Tail] = ()
    ridden: bool = False

    @property
    def slots(self) -> int:
        """Of its pass."""
        return self.step.slots

    @property
    def passes(self) -> Sequence[float]:
        """The seconds of its pass."""
        return (self.step.forward_seconds,)


class Rested(NamedTuple):
    """Steps that did not ask the pool, and what it would have said: places in them, and what it offers there."""

    rest: Rest
    offers: Sequence[tuple[int, Offer]]

    @property
    def slots(self) -> int:
        """Of each pass."""
        return 1

    @property
    def passes(self) -> Sequence[float]:
        """The seconds of each pass."""
        return self.rest.passes


class Behind(NamedTuple):
    """The seconds from the end of a rest until the next step began."""

    seconds: float


class Aside:
    """Puts them aside, and says when there are enough of them."""

    def __init__(self) -> None:
        self._entries: list[Observed | Rested | Behind] = []
        self._asked = self._rested = 0
        self._seconds = 0.0

    def put(self, entry: Observed | Rested | Behind) -> None:
        """One more."""
        self._entries.append(entry)
        if isinstance(entry, Observed):
            self._asked += 1
            self._seconds += entry.seconds
        elif isinstance(entry, Rested):
            self._rested += len(entry.passes)
            self._seconds += sum(entry.passes)

    def enough(self, learnt: int) -> bool:
        """Whether it is time to learn from them, after so many steps that were learnt from."""
        asked = 0 < self._asked >= min(TOGETHER, learnt // 2)
        rested = 0 < self._rested >= min(RESTED_TOGETHER, learnt // 2)
        return asked or rested or self._seconds > TOGETHER_SECONDS

    def take(self) -> list[Observed | Rested | Behind]:
        """All, in order, which are not there any more."""
        entries, self._entries = self._entries, []
        self._asked = self._rested = 0
        self._seconds = 0.0
        return entries
