"""What a window adds to the tokens of a step, beside what guesses bring without it.

Both are known of the same steps: what a step with a window would have emitted without it follows from what the pool
offered and from the text that came. So it does not matter that a text changes while a window is tried.
"""

import math
from dataclasses import dataclass, field

from ladechat.decoder.guess_kind import LONGEST
from ladechat.decoder.guess_worth import MOST
from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.means import REMEMBERED, Mean

WITH_WINDOW = tuple(
    LookaheadSettings(window, ngram, MOST, longest_guess=LONGEST)
    for window, ngram in ((2, 3), (3, 3), (5, 3), (7, 3), (5, 5), (7, 5), (10, 5), (15, 5))
)

HOPE = 0.15
"""What each doubling of W + 1 adds to the tokens of a step where one comes without it, as long as none was tried. Where
more come without it, it adds less: what was guessed need not be computed."""
HOPED = 16
"""As how many steps that counts."""
FORGOTTEN = 1000
"""After so many steps without it, what a window adds is open again."""


@dataclass
class _Tried:
    doublings: float
    """Of W + 1."""
    added: Mean = field(default_factory=lambda: Mean(REMEMBERED))
    seen: int = 0
    slots: Mean = field(default_factory=lambda: Mean(REMEMBERED))
    last: int = -FORGOTTEN

    def known(self, now: int) -> bool:
        return now - self.last < FORGOTTEN


class WindowWorth:
    """Learns what each of `WITH_WINDOW` adds, and from one what may be hoped of the others.

    `now`, in its methods, is a number of steps.
    """

    def __init__(self) -> None:
        self._tried = {settings: _Tried(math.log2(1 + settings.window)) for settings in WITH_WINDOW}
        self._hope = Mean(REMEMBERED)
        self._hope.add(HOPE, HOPED)
        self.forget_times()

    def forget_times(self) -> None:
        """What passes cost has changed: what windows add, and their slots, is still known."""
        self._besides = Mean(REMEMBERED)

    def took(self, settings: LookaheadSettings, slots: int, besides: float, now: int) -> None:
        """Take in a step: the slots of its pass, and the seconds that were not its pass."""
        tried = self._tried[settings]
        if not tried.known(now):
            tried.added, tried.slots, tried.seen = Mean(REMEMBERED), Mean(REMEMBERED), 0
        tried.last = now
        tried.slots.add(slots)
        self._besides.add(besides)

    def learn(self, settings: LookaheadSettings, emitted: int, without: int, usual: float) -> None:
        """Take in that a step has emitted so many tokens, and would have emitted others without a window.

        Args:
            settings: of the step.
            emitted: tokens.
            without: tokens.
            usual: the tokens of a step without a window, on average.
        """
        tried = self._tried[settings]
        tried.added.add(emitted - without)
        tried.seen += 1
        # Scaled up, what a step says is the less sure.
        self._hope.add((emitted - without) * usual / tried.doublings, 1 / usual**2)

    def known(self, settings: LookaheadSettings, now: int) -> bool:
        """Whether it was tried of late."""
        return self._tried[settings].known(now)

    def adds(self, settings: LookaheadSettings, usual: float, now: int) -> tuple[float, float]:
        """What it is expected to add to the tokens of a step, and what may yet be hoped for.

        Args:
            settings: one of `WITH_WINDOW`.
            usual: the tokens of a step without a window, on average.
            now: see above.
        """
        tried = self._tried[settings]
        weight, seen = (tried.added.weight, tried.seen) if tried.known(now) else (0.0, 0)
        part = HOPED / (HOPED + weight)
        scale = tried.doublings / usual
        expected = part * max(0.0, self._hope.value) * scale + (1 - part) * tried.added.value
        return expected, expected + math.sqrt(HOPED / (HOPED + seen)) * HOPE * scale

    def slots(self, settings: LookaheadSettings, guesses: float, now: int) -> float:
        """Of a step, where guesses take so many slots without a window."""
        tried = self._tried[settings]
        return tried.slots.value if tried.known(now) else slots_of_window(settings) + guesses

    def besides(self) -> float | None:
        """The seconds of a step that are not its pass; None before one was timed."""
        return self._besides.value if self._besides.weight else None


def slots_of_window(settings: LookaheadSettings) -> int:
    """Of a pass that verifies no guess, that of the last token included."""
    return (settings.ngram - 1) * settings.window
