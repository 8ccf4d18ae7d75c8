"""Chooses W, N and G while a model writes: what a pass of T slots costs, set against what its drafts yield.

Without a window, guesses are picked anew at every step, none of them where none is worth its slots: see `GuessWorth`.
What a window adds can only be tried; that is done where it may pay, and for a small part of the time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ladechat.decoder.guess_worth import LONGEST, MOST, GuessWorth, Mean, Pick
from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.ngram_pool import Guess
from ladechat.decoder.step import Step

PLAIN = LookaheadSettings(0, 2, 0)
"""One token a step. It is never chosen by itself: a step without a window that picks no guess is one of these."""

WITHOUT_WINDOW = LookaheadSettings(0, LONGEST + 1, MOST)
WITH_WINDOW = tuple(
    LookaheadSettings(*numbers)
    for numbers in ((2, 3, 2), (3, 3, 3), (5, 3, 5), (7, 3, 7), (5, 5, 5), (7, 5, 7), (10, 5, 10), (15, 5, 15))
)

REMEMBERED = 200
"""Older tokens count less and less: a text changes."""
STAY = 16
"""How many steps settings are kept at least: columns tell after N − 1 passes, and the pool has to fill."""
COMPARED = 8
"""A window that was chosen so often in a row is left out once, to see what the text is like without it by now."""
EXPLORED = 0.02
"""The part of the time that windows may be tried in without knowing whether they pay."""
FORGOTTEN = 1000
"""After so many steps without it, what a window is worth is open again."""
HOPE = 0.15
"""What each doubling of W may add to the tokens of a step, as far as is known before it was tried."""
BETTER = 1.03
"""By how much other settings must be expected to be faster before they are chosen."""


@dataclass
class _Tried:
    """What settings were worth, by token: the part of a step that it takes, and the time; and the slots of a pass.

    Times are parts of others, for a machine is not equally fast all the time: without a window, of a plain step; with
    one, of what tokens took without it just before.
    """

    steps: Mean = field(default_factory=lambda: Mean(REMEMBERED))
    share: Mean = field(default_factory=lambda: Mean(REMEMBERED))
    slots: Mean = field(default_factory=lambda: Mean(REMEMBERED))
    last: int = -FORGOTTEN

    def add(self, tokens: int, share: float, slots: int) -> None:
        self.steps.add(1 / tokens, tokens)
        self.share.add(share / tokens, tokens)
        self.slots.add(slots)

    def add_plain(self, steps: int) -> None:
        """So many steps of plain decoding."""
        for mean in (self.steps, self.share, self.slots):
            mean.add(1.0, steps)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What settings are expected to do. `known` is False where a window is only hoped for."""

    settings: LookaheadSettings
    slots: float
    tokens_per_step: float
    seconds_per_token: float
    known: bool

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return 1 / self.seconds_per_token


class Tuner:
    """Learns from the steps of a decoder which settings are fastest.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
    """

    def __init__(self, cost: Callable[[int], float]) -> None:
        self._cost = cost
        self._worth = GuessWorth(cost)
        self._text: list[int] = []
        self._offered: deque[tuple[int, Sequence[Guess]]] = deque()
        self._offer: Sequence[Guess] = ()
        self._without = _Tried()
        self._windows = {settings: _Tried() for settings in WITH_WINDOW}
        self._besides = Mean(REMEMBERED)
        self._steps = self._since = self._chosen_again = self._resting = 0
        self._seconds = self._exploring = 0.0
        self._settings = WITHOUT_WINDOW
        self._known = True

    @property
    def settings(self) -> LookaheadSettings:
        """What the next step should be decoded with."""
        return self._settings

    @property
    def exploring(self) -> bool:
        """Whether these are tried without knowing whether they pay."""
        return not self._known

    def begin(self) -> None:
        """Another text: what the steps before it were offered is not judged by it."""
        self._text.clear()
        self._offered.clear()

    def forget_times(self) -> None:
        """What passes cost has changed at once, as when others of them are compiled: what was timed is of no use."""
        self._worth.forget_times()
        self._besides = Mean(REMEMBERED)

    def context(self) -> int:
        """So many of the last tokens the pool must have seen in a row for a step without a window to ask it."""
        return self._worth.context()

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """Which guesses the next step should verify. With a window, as many as its settings say."""
        self._offer = guesses
        if self._settings.window:
            return Pick(self._settings.guesses, self._settings.ngram - 1)
        return self._worth.pick(guesses)

    def observe(self, step: Step, seconds: float) -> None:
        """Learn from a step that was decoded with `settings` and took so long in all; then choose anew."""
        self._steps += 1
        self._since += 1
        self._seconds += seconds
        self._exploring += 0.0 if self._known else seconds
        if self._offer:
            self._offered.append((len(self._text), self._offer[:MOST]))
        self._text.extend(step.tokens)
        if self._offered:
            self._judge_guesses()
        if self._settings.window:
            self._learn_window(self._windows[self._settings], step, seconds)
        else:
            self._count_rests()
            self._worth.took(step.slots, len(step.tokens), seconds)
            self._without.add(len(step.tokens), self._in_plain_steps(step.slots), step.slots)
        if self._since >= STAY:
            self._choose()

    def rested(self, step: Step, seconds: float) -> None:
        """Learn from a step that did not ask the pool. Such steps choose nothing anew: little time is all they take."""
        self._steps += 1
        self._since += 1
        self._seconds += seconds
        self._text.extend(step.tokens)
        self._worth.rested(seconds)
        self._resting += 1

    def estimates(self) -> Iterator[Estimate]:
        """What is expected of plain decoding, of guesses without a window, and of every window."""
        self._count_rests()
        plain = self._worth.plain_seconds()
        yield Estimate(PLAIN, 1, 1.0, plain, known=True)
        without = self._without
        tokens, seconds = 1 / (without.steps.value or 1.0), (without.share.value or 1.0) * plain
        yield Estimate(WITHOUT_WINDOW, without.slots.value or 1.0, tokens, seconds, known=True)
        for settings, tried in self._windows.items():
            if tried.share.weight and self._steps - tried.last < FORGOTTEN:
                own = tried.share.value * seconds
                yield Estimate(settings, tried.slots.value, 1 / tried.steps.value, own, known=True)
            else:
                hoped = tokens + HOPE * (1 + settings.window).bit_length()
                slots = tried.slots.value or float((settings.ngram - 1) * settings.window + settings.guesses)
                yield Estimate(settings, slots, hoped, (self._cost(round(slots)) + self._host()) / hoped, known=False)

    def _count_rests(self) -> None:
        """Take the steps in, together, that did not ask the pool."""
        if self._resting:
            self._without.add_plain(self._resting)
            self._resting = 0

    def _in_plain_steps(self, slots: int) -> float:
        """What a step without a window takes, as a part of a plain one."""
        return self._worth.seconds(slots) / self._worth.plain_seconds()

    def _host(self) -> float:
        """What a step with a window takes besides its pass."""
        return self._besides.value if self._besides.weight else self._worth.seconds(2) - self._cost(2)

    def _judge_guesses(self) -> None:
        """Compare what was offered with the text, as soon as that is long enough."""
        while self._offered and self._offered[0][0] + LONGEST <= len(self._text):
            place, guesses = self._offered.popleft()
            self._worth.learn(guesses, tuple(self._text[place : place + LONGEST]))

    def _learn_window(self, tried: _Tried, step: Step, seconds: float) -> None:
        self._besides.add(seconds - self._cost(step.slots))
        tried.last = self._steps
        without = self._without.share.value * self._worth.plain_seconds()
        if self._since >= self._settings.ngram and without:
            tried.add(len(step.tokens), (self._cost(step.slots) + self._host()) / without, step.slots)

    def _choose(self) -> None:
        estimates = {one.settings: one for one in self.estimates()}
        del estimates[PLAIN]
        best = now = estimates[self._settings]
        fastest = min((one for one in estimates.values() if one.known), key=lambda one: one.seconds_per_token)
        if not now.known or fastest.rate > BETTER * now.rate:
            best = fastest
        hoped = min(estimates.values(), key=lambda one: one.seconds_per_token)
        if not hoped.known and hoped.rate > BETTER * best.rate and self._exploring <= EXPLORED * self._seconds:
            best = hoped
        self._chosen_again = self._chosen_again + 1 if best is now and now.settings.window else 0
        if self._chosen_again == COMPARED:
            best, self._chosen_again = estimates[WITHOUT_WINDOW], 0
        self._since = 0
        self._settings, self._known = best.settings, best.known
