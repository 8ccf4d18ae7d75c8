"""Chooses W, N and G while a model writes: what a pass of T slots costs, set against what its drafts yield.

Without a window, guesses are picked anew at every step, none of them where none is worth its slots: see `GuessWorth`.
What a window adds can only be tried; that is done where it may pay, and for a small part of the time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ladechat.decoder.guess_kind import LONGEST
from ladechat.decoder.guess_worth import MOST, GuessWorth, Offer
from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.means import Mean
from ladechat.decoder.ngram_pool import Guess
from ladechat.decoder.picker import Pick, Pool, Rest
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
REVIEWED, REVIEWED_SECONDS = 64, 0.2
"""After so many steps without a window, and so long, it is asked whether one would be better."""
COMPARED, LEFT_OUT = 8, 32
"""A window that was chosen so often in a row is left out for so many steps, to see what the text is like without it."""
EXPLORED = 0.02
"""The part of the time that may be lost by trying windows without knowing whether they pay."""
TOGETHER = 16
"""So many steps that asked the pool are learnt from together, fewer at first: one by one that takes longer, for after a
pass nothing of this is in the processor's cache."""
TOGETHER_SECONDS = 0.1
"""Steps that take longer than this together are learnt from, how few they may be."""
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


class Observed(NamedTuple):
    """A step that asked the pool, the seconds that it took in all, and what it was offered."""

    step: Step
    seconds: float
    offer: Offer


class Tuner:
    """Learns from the steps of a decoder which settings are fastest.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
    """

    def __init__(self, cost: Callable[[int], float]) -> None:
        self._cost = cost
        self._worth = GuessWorth(cost)
        self._text: list[int] = []
        self._offered: deque[tuple[int, Offer]] = deque()
        self._offer: Offer = []
        self._without = _Tried()
        self._windows = {settings: _Tried() for settings in WITH_WINDOW}
        self._besides = Mean(REMEMBERED)
        self._steps = self._since = self._chosen_again = self._into_text = 0
        self._aside: list[Observed] = []
        self._seconds_aside = 0.0
        self._seconds = self._reviewed = self._exploring = self._fastest = 0.0
        self._settings = WITHOUT_WINDOW
        self._known, self._comparing = True, False

    @property
    def settings(self) -> LookaheadSettings:
        """What the next step should be decoded with."""
        return self._settings

    @property
    def exploring(self) -> bool:
        """Whether these are tried without knowing whether they pay."""
        return not self._known

    def begin(self) -> Sequence[Observed]:
        """Another text: what the steps before it were offered is not judged by it.

        Returns:
            Those that had been put aside.
        """
        aside = self._learn()
        self._offer = []  # of a step that failed
        self._into_text = 0
        self._text.clear()
        self._offered.clear()
        self._worth.begin()
        return aside

    def forget_times(self) -> None:
        """What passes cost has changed at once, as when others of them are compiled: what was timed is of no use."""
        self._learn()
        self._worth.forget_times()
        self._besides = Mean(REMEMBERED)

    def rests(self, pool: Pool) -> int:
        """How many steps, without a window, should not ask the pool before one does."""
        return self._worth.rests(pool)

    def most(self) -> int:
        """How many guesses are worth looking at. With a window, as many as its settings say."""
        return self._settings.guesses if self._settings.window else self._worth.most

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """Which guesses the next step should verify. With a window, as many as its settings say."""
        self._offer = self._worth.offered(guesses)
        if self._settings.window:
            return Pick(self._settings.guesses, self._settings.ngram - 1)
        return self._worth.pick(self._offer)

    def observe(self, step: Step, seconds: float) -> Sequence[Observed]:
        """Take in a step that was decoded with `settings` and took so long in all.

        It is put aside until there are enough to learn from, and to choose anew.

        Returns:
            What has been learnt from: nothing where the step was put aside.
        """
        self._aside.append(Observed(step, seconds, self._offer))
        self._worth.came(step.tokens)
        self._offer = []
        self._seconds_aside += seconds
        enough = len(self._aside) >= min(TOGETHER, self._steps // 4) or self._seconds_aside > TOGETHER_SECONDS
        return self._learn() if enough or self._settings.window else ()

    def rested(self, rest: Rest, pool: Pool) -> Sequence[Observed]:
        """Take in steps that did not ask the pool, and what it would have said.

        Returns:
            See `observe`.
        """
        aside = self._learn_aside()
        count = len(rest.tokens)
        offered = self._worth.look_back(rest.tokens, pool)
        self._offered += [(len(self._text) + place, offer) for place, offer in offered]
        self._text += rest.tokens
        self._steps += count
        self._since += count
        self._seconds += sum(rest.passes) + rest.besides
        self._worth.rested(rest)
        self._without.add_plain(count)
        self._judge_guesses()
        self._review()
        return aside

    def _learn(self) -> Sequence[Observed]:
        aside = self._learn_aside()
        self._review()
        return aside

    def _learn_aside(self) -> Sequence[Observed]:
        """From all that was put aside, in order."""
        aside, self._aside, self._seconds_aside = self._aside, [], 0.0
        for one in aside:
            self._learn_step(one.step, one.seconds, one.offer)
        return aside

    def _learn_step(self, step: Step, seconds: float, offer: Offer) -> None:
        self._steps += 1
        self._since += 1
        self._into_text += 1
        self._seconds += seconds
        self._exploring += 0.0 if self._known else self._lost(seconds, len(step.tokens))
        if offer:
            self._offered.append((len(self._text), offer))
        self._text.extend(step.tokens)
        if self._settings.window:
            self._learn_window(self._windows[self._settings], step, seconds)
        else:
            self._worth.took(step.slots, len(step.tokens), seconds, seconds - step.forward_seconds)
            self._without.add(len(step.tokens), self._in_plain_steps(step.slots), step.slots)
        self._judge_guesses()

    def _judge_guesses(self) -> None:
        """Compare what was offered with the text, as soon as that is long enough."""
        while self._offered and self._offered[0][0] + LONGEST <= len(self._text):
            place, offer = self._offered.popleft()
            self._worth.learn(offer, tuple(self._text[place : place + LONGEST]))

    def estimates(self) -> Iterator[Estimate]:
        """What is expected of plain decoding, of guesses without a window, and of every window."""
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
                hoped = min(tokens + HOPE * (1 + settings.window).bit_length(), settings.ngram)
                slots = tried.slots.value or float((settings.ngram - 1) * settings.window + settings.guesses)
                yield Estimate(settings, slots, hoped, (self._cost(round(slots)) + self._host()) / hoped, known=False)

    def _in_plain_steps(self, slots: int) -> float:
        """What a step without a window takes, as a part of a plain one."""
        return self._worth.seconds(slots) / self._worth.plain_seconds()

    def _host(self) -> float:
        """What a step with a window takes besides its pass."""
        return self._besides.value if self._besides.weight else self._worth.seconds(2) - self._cost(2)

    def _may_try(self, hoped: Estimate, without: Estimate) -> bool:
        """Whether it costs little enough even if it adds nothing: for a small model a window can take fifty steps."""
        would_lose = STAY * self._lost(hoped.seconds_per_token * hoped.tokens_per_step, without.tokens_per_step)
        return self._exploring + would_lose <= EXPLORED * self._seconds

    def _lost(self, seconds: float, tokens: float) -> float:
        """By how much a step took longer than its tokens take with what is known to be fastest."""
        return max(0.0, seconds - tokens * self._fastest)

    def _learn_window(self, tried: _Tried, step: Step, seconds: float) -> None:
        self._besides.add(seconds - step.forward_seconds)
        tried.last = self._steps
        without = self._without.share.value * self._worth.plain_seconds()
        if min(self._since, self._into_text) >= self._settings.ngram and without:
            tried.add(len(step.tokens), (self._cost(step.slots) + self._host()) / without, step.slots)

    def _review(self) -> None:
        """Choose anew, if that is due."""
        if self._settings.window or self._comparing:
            due = self._since >= (STAY if self._settings.window else LEFT_OUT)
        else:
            due = self._since >= REVIEWED and self._seconds >= self._reviewed + REVIEWED_SECONDS
        if due:
            self._choose()

    def _choose(self) -> None:
        estimates = {one.settings: one for one in self.estimates()}
        del estimates[PLAIN]
        best = now = estimates[self._settings]
        fastest = min((one for one in estimates.values() if one.known), key=lambda one: one.seconds_per_token)
        self._fastest = fastest.seconds_per_token
        if not now.known or fastest.rate > BETTER * now.rate:
            best = fastest
        hoped = min(estimates.values(), key=lambda one: one.seconds_per_token)
        if not hoped.known and hoped.rate > BETTER * best.rate and self._may_try(hoped, estimates[WITHOUT_WINDOW]):
            best = hoped
        self._chosen_again = self._chosen_again + 1 if best is now and now.settings.window else 0
        self._comparing = self._chosen_again == COMPARED
        if self._comparing:
            best, self._chosen_again = estimates[WITHOUT_WINDOW], 0
        self._since, self._reviewed = 0, self._seconds
        self._settings, self._known = best.settings, best.known
