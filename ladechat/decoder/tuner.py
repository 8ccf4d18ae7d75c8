"""Chooses W, N and G while a model writes: what a pass of T slots costs, set against what its drafts yield.

Guesses are picked for each step by itself, with a window or without, none of them where none is worth its slots: see
`GuessWorth`. What a window adds can only be tried; that is done where it is expected to pay, and for a small part of
the time where it may: see `WindowWorth`.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ladechat.decoder.aside import Aside, Behind, Observed, Rested
from ladechat.decoder.estimate import Estimate, WithoutWindow
from ladechat.decoder.guess_kind import LONGEST
from ladechat.decoder.guess_worth import MOST, GuessWorth, Offer, slots_of
from ladechat.decoder.lookahead import LookaheadSettings
from ladechat.decoder.ngram_pool import Guess, Tail
from ladechat.decoder.picker import Pick, Pool, Rest, RestPlan, Ridden, RidePlan
from ladechat.decoder.step import Step, agreeing
from ladechat.decoder.window_worth import FORGOTTEN, WITH_WINDOW, WindowWorth, slots_of_window

PLAIN = LookaheadSettings(0, 2, 0)
"""One token a step. It is never chosen by itself: a step without a window that picks no guess is one of these."""

WITHOUT_WINDOW = LookaheadSettings(0, LONGEST + 1, MOST)

STAY = 16
"""How many steps a window is kept at least: columns tell after N − 1 passes, and the pool has to fill."""
REVIEWED, REVIEWED_SECONDS, SOON = 64, 0.2, 4
"""After so many steps without a window, and so long, it is asked whether one would be better; sooner at first."""
EXPLORED = 0.02
"""The part of the time that may be lost in all by trying windows, before one is tried that is not expected to pay."""
BETTER = 1.03
"""By how much other settings must be expected to be faster before they are chosen."""


class Offered(NamedTuple):
    """What was offered at a place of the text, and to a step with which settings.

    With a window, `emitted` is how many tokens came of that step, 0 where the window had only begun; `instead` is that
    of `Observed`.
    """

    place: int
    offer: Offer
    settings: LookaheadSettings
    emitted: int = 0
    instead: Sequence[Tail] = ()


class Tuner:
    """Learns from the steps of a decoder which settings are fastest.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
        lost: what is assumed of `ladechat.decoder.means.Aftermath.lost`; None where nothing is.
    """

    def __init__(self, cost: Callable[[int], float], lost: Callable[[], float | None] = lambda: 0.0) -> None:
        self._cost = cost
        self._worth = GuessWorth(cost, lost)
        self._text: list[int] = []
        self._offered: deque[Offered] = deque()
        self._offer: Offer = []
        self._alone = False
        """Whether the likeliest guess was picked by itself."""
        self._instead: Sequence[Tail] = ()
        self._without = WithoutWindow()
        self._windows = WindowWorth()
        self._steps = self._since = self._held = self._into_text = self._last_without = 0
        self._aside = Aside()
        self._seconds = self._reviewed = self._explored = self._fastest = 0.0
        self._settings = WITHOUT_WINDOW
        self._exploring = False

    @property
    def settings(self) -> LookaheadSettings:
        """What the next step should be decoded with."""
        return self._settings

    @property
    def exploring(self) -> bool:
        """Whether a window is tried that was not of late, or that is not expected to pay."""
        return self._exploring

    def begin(self) -> None:
        """Another text: what the steps before it were offered is not judged by it."""
        self._offer, self._instead, self._alone = [], (), False  # of a step that failed
        self._into_text = 0
        self._text.clear()
        self._offered.clear()
        self._worth.begin()

    def end(self) -> Sequence[Observed | Rested]:
        """The text is over, and nobody waits: learn from all that was put aside.

        Returns:
            See `observe`.
        """
        return self._learn()

    def forget_times(self) -> None:
        """What passes cost has changed at once, as when others of them are compiled: what was timed is of no use."""
        self._learn_aside()
        self._without.forget_times()
        self._worth.forget_times()
        self._windows.forget_times()

    def rests(self, pool: Pool) -> RestPlan:
        """For how long, without a window, the pool should not be asked."""
        return self._worth.rests(pool)

    def most(self) -> int:
        """How many guesses are worth looking at. With a window also those that were there without its own."""
        return min(2 * self._worth.most, MOST) if self._settings.window else self._worth.most

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """Which guesses the next step should verify."""
        self._offer = self._worth.offered(guesses)
        if not self._settings.window:
            picked = self._worth.pick(self._offer)
            self._alone = picked.number == 1
            return picked
        self._worth.renew()
        others = [guess for guess in guesses if guess.source != "window"]
        without = self._worth.kinds_of(others[: self._worth.most])
        number, length = self._worth.pick(without)
        self._instead = [tail[:length] for tail, _ in without[:number]]
        return self._worth.pick(self._offer, beside=slots_of_window(self._settings) - 1)

    def observe(self, step: Step, seconds: float) -> Sequence[Observed | Rested]:
        """Take in a step that was decoded with `settings` and took so long in all.

        It is put aside until there are enough to learn from, and to choose anew.

        Returns:
            What has been learnt from: nothing where the step was put aside.
        """
        self._worth.came(step.tokens, self._alone and len(step.tokens) == step.slots)
        self._put_aside(Observed(step, seconds, self._offer, self._instead))
        return self._learn() if self._settings.window or self._aside.enough(self._steps) else ()

    def rested(self, rest: Rest, pool: Pool) -> Sequence[Observed | Rested]:
        """Take in steps that did not ask the pool, and what it would have said.

        Returns:
            See `observe`.
        """
        offers = self._worth.look_back(rest.tokens, pool)
        self._worth.came_resting(rest)
        self._aside.put(Rested(rest, offers))
        return self._learn() if self._aside.enough(self._steps) else ()

    def rides(self) -> RidePlan:
        """For how many steps, without a window, the likeliest guess should be verified and nobody asked."""
        return self._worth.rides()

    def rode(self, ridden: Sequence[Ridden]) -> Sequence[Observed | Rested]:
        """Take in steps that asked nobody which guesses to verify.

        Returns:
            See `observe`.
        """
        for guesses, step, seconds in ridden:
            offer = self._worth.offered(guesses)
            self._worth.came(step.tokens)
            self._put_aside(Observed(step, seconds, offer, ridden=True))
        return self._learn()

    def rode_behind(self, seconds: float) -> None:
        """Take in how long it took to take that in."""
        self._worth.times.took_behind(seconds)

    def _put_aside(self, observed: Observed) -> None:
        self._aside.put(observed)
        self._offer, self._instead, self._alone = [], (), False

    def took_behind(self, seconds: float) -> None:
        """Take in how long it took from the end of a rest until the next step began."""
        self._aside.put(Behind(seconds))

    def _learn(self) -> Sequence[Observed | Rested]:
        learnt = self._learn_aside()
        self._review()
        return learnt

    def _learn_aside(self) -> Sequence[Observed | Rested]:
        """From all that was put aside, in order."""
        learnt = list[Observed | Rested]()
        for one in self._aside.take():
            if isinstance(one, Behind):
                self._worth.took_behind(one.seconds)
                continue
            learnt.append(one)
            if isinstance(one, Observed):
                self._learn_step(one)
            else:
                self._learn_rest(one)
        return learnt

    def _learn_rest(self, rested: Rested) -> None:
        rest, offers = rested
        count = len(rest.tokens)
        self._offered += [Offered(len(self._text) + place, offer, WITHOUT_WINDOW) for place, offer in offers]
        self._text += rest.tokens
        self._steps += count
        self._last_without = self._steps
        self._since += count
        self._seconds += sum(rest.passes) + rest.besides
        self._worth.rested(rest)
        self._without.add_plain(count)
        self._judge()

    def _learn_step(self, observed: Observed) -> None:
        step, seconds, offer, instead, ridden = observed
        settings, besides = self._settings, seconds - step.forward_seconds
        self._steps += 1
        self._since += 1
        self._held += 1
        self._into_text += 1
        self._seconds += seconds
        if self._exploring:
            self._explored = max(0.0, self._explored + seconds - len(step.tokens) * self._fastest)
        if step.window is not None:
            begun = min(self._held, self._into_text) < settings.ngram  # columns tell after N − 1 passes
            emitted = 0 if begun else len(step.tokens)
            self._offered.append(Offered(len(self._text), offer, settings, emitted, instead))
            self._windows.took(settings, step.slots, min(besides, self._cost(step.slots)), self._steps)
            self._worth.took_with_window(seconds)
        else:
            if offer:
                self._offered.append(Offered(len(self._text), offer, WITHOUT_WINDOW))
            self._last_without = self._steps
            take_in = self._worth.rode if ridden else self._worth.took
            take_in(step.slots, len(step.tokens), seconds, besides)
            self._without.add(len(step.tokens), self._in_plain_steps(step.slots), step.slots)
        self._text.extend(step.tokens)
        self._judge()

    def _judge(self) -> None:
        """Compare what was offered with the text, as soon as that is long enough."""
        while self._offered and self._offered[0].place + LONGEST <= len(self._text):
            offered = self._offered.popleft()
            following = tuple(self._text[offered.place : offered.place + LONGEST])
            self._worth.learn(offered.offer, following)
            if offered.settings.window:
                self._compare(offered, following)

    def _compare(self, offered: Offered, following: Tail) -> None:
        """What a step with a window would have been without it."""
        instead = offered.instead
        tokens = 1 + max((agreeing(tail, following) for tail in instead), default=0)
        slots = 1 + sum(slots_of(tail, instead[:number]) for number, tail in enumerate(instead))
        self._without.add(tokens, self._in_plain_steps(slots) if instead else 1.0, slots)
        if offered.emitted:
            self._windows.learn(offered.settings, offered.emitted, tokens, 1 / self._without.steps.value)

    def estimates(self) -> Iterator[Estimate]:
        """What is expected of plain decoding, of guesses without a window, and of every window."""
        plain = self._worth.times.plain()
        yield Estimate(PLAIN, 1, 1.0, plain, known=True, tokens_at_best=1.0)
        without = self._without
        slots, usual = without.slots.value or 1.0, 1 / (without.steps.value or 1.0)
        seconds = (without.share.value or 1.0) * plain * usual
        yield Estimate(WITHOUT_WINDOW, slots, usual, seconds, known=True, tokens_at_best=usual)
        for settings in WITH_WINDOW:
            added, at_best = self._windows.adds(settings, usual, self._steps)
            with_it = self._windows.slots(settings, slots - 1, self._steps)
            seconds = self._cost(round(with_it)) + self._besides_window()
            known = self._windows.known(settings, self._steps)
            yield Estimate(settings, with_it, max(1.0, usual + added), seconds, known, max(1.0, usual + at_best))

    def _in_plain_steps(self, slots: int) -> float:
        """What a step without a window takes, as a part of a plain one."""
        return self._worth.times.seconds(slots) / self._worth.times.plain()

    def _besides_window(self) -> float:
        """What a step with a window takes besides its pass."""
        measured = self._windows.besides()
        return self._worth.times.seconds(2) - self._cost(2) if measured is None else measured

    def _may_try(self, hoped: Estimate, without: Estimate) -> bool:
        """Whether it costs little enough even if it adds nothing: for a small model a step with a window can take as
        long as fifty without.
        """
        would_lose = STAY * (hoped.seconds_per_step - without.tokens_per_step * self._fastest)
        return self._explored + would_lose <= EXPLORED * self._seconds

    def _review(self) -> None:
        """Choose anew, if that is due."""
        if self._settings.window:
            due = self._since >= STAY
        else:
            due = self._since >= min(REVIEWED, max(SOON, self._steps // 2))
            due = due and self._seconds - self._reviewed >= min(REVIEWED_SECONDS, self._seconds / 2)
        if due:
            self._choose()

    def _choose(self) -> None:
        _, without, *windows = self.estimates()
        estimates = [without, *windows]
        now = next(one for one in estimates if one.settings == self._settings)
        self._fastest = 1 / max(one.rate for one in estimates if one.known)
        best = max(estimates, key=lambda one: one.rate)
        if best.rate <= BETTER * now.rate and not self._exploring:  # what was only tried has no claim to stay
            best = now
        hoped = max(estimates, key=lambda one: one.rate_at_best)
        may_be_better = hoped is not best and hoped.rate_at_best > BETTER * best.rate
        trying = may_be_better and self._may_try(hoped, without)
        taken = hoped if trying else best
        if self._steps - self._last_without >= FORGOTTEN:  # nothing says meanwhile what steps without a window take
            trying, taken = False, without
        self._since, self._reviewed = 0, self._seconds
        self._held = self._held if taken is now else 0
        self._settings, self._exploring = taken.settings, trying or not taken.known
