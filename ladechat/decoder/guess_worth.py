"""Which of the pool's guesses are worth their slots: decided at every step.

A step that verifies guesses takes longer than a plain one, and may emit more. The most tokens per second come in the
long run from the choice, at each step, with the largest E[tokens] − λ · E[seconds], where λ is that rate itself
(Dinkelbach 1967, on the ratio of two sums; here it is what was reached of late). What a guess adds is learnt without
trying it: the text that follows says how much of it was right.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ladechat.decoder.foresight import FORESEEN, Foresight, agreeing
from ladechat.decoder.guess_kind import LENGTHS, Kind
from ladechat.decoder.means import REMEMBERED, Aftermath, Mean
from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess, Tail

MOST = 5
"""How many guesses a step verifies at most. Of those further down hardly one is right where none before it is."""

KNOWN = 3
"""So many times must have been seen for their mean to count."""
NEGLIGIBLE = 0.02
"""A guess that adds so few tokens, and those after it, are not looked at."""

MARGIN = 0.05
"""By so many tokens guesses must be better than none."""

RENEWED = 64
"""For so many steps, and fewer at first, what a step of each size takes is taken as known: to work it out takes its
time too."""

ASKED_ANYWAY, NOT_ASKED_ANYWAY = 64, 64
"""One step in so many at least asks the pool whether that pays or not, and one does not."""

ASKING = 0.003
"""Where this part of the time suffices to ask more often anyway, that is done: what is not asked for is not learnt."""

FIRST = 16
"""The first steps all ask: nothing is known yet."""

RESTS_REMEMBERED = 4 * REMEMBERED
"""There are many, and they are learnt from together."""

LOOKS_APART, LONGEST_REST = 3, 32
"""Where guesses pay behind the longest contexts only, one step in so many looks at the pool; and for so many steps at
most it is decided at once what they do."""

LONGEST_KIND = LONGEST_CONTEXT + len(FORESEEN)
"""The longest context that a guess can be as good as one of."""
NEVER = LONGEST_KIND + 1
"""A context that nothing has."""

OPEN_AGAIN = 200
"""After so many steps that asked and tried no guess, what they take besides their pass is open again."""

FADING = 0.99
"""What a step counts, in the rate of late, for each step after it."""


class Pick(NamedTuple):
    """The first `number` guesses, cut to `length` tokens."""

    number: int
    length: int


NOTHING = Pick(0, 0)


class Wants(NamedTuple):
    """For how many steps the pool is asked only where it has seen how many of the last tokens in a row, and at which of
    them it is looked at: the first, and then one in `every`. They end with the first step that asks.
    """

    context: int
    steps: int
    every: int = 1


ALWAYS = Wants(0, 1)


Offer = list[tuple[Tail, Kind]]
"""Guesses, and of which kind each was when the pool had it."""


class GuessWorth:
    """Learns what guesses yield, and picks those of a step.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
    """

    def __init__(self, cost: Callable[[int], float]) -> None:
        self._cost = cost
        self._kinds: dict[tuple[int, int, bool], Kind] = {}
        self._foresight = Foresight()
        self._steps = self._context = self._asked = self._not_asked = 0
        self._renewed = -RENEWED
        self.most = MOST
        """How many of the pool's guesses are worth looking at now."""
        self.forget_times()

    def begin(self) -> None:
        """Another text."""
        self._foresight.begin()

    def forget_times(self) -> None:
        """What passes cost has changed: only what guesses yield is still known."""
        self._besides = {"rest": Mean(RESTS_REMEMBERED), "plain": Mean(REMEMBERED), "guesses": Mean(REMEMBERED)}
        self._aftermath = Aftermath()
        self._tokens = self._seconds = self._reached = 0.0
        self._expected: dict[int, float] = {}
        self._since_guesses = 0
        self._asked_anyway = ASKED_ANYWAY

    def wants(self) -> Wants:
        """Where guesses may be worth asking the pool for: to ask, and to look whether it knows anything, take time too.

        Now and then any step asks, so that all kinds are judged, or none, so that it is known what such a step takes.
        """
        if self._steps >= self._renewed + min(max(FIRST, self._renewed), RENEWED):
            self._renew()
        if self._steps >= max(FIRST, self._not_asked + NOT_ASKED_ANYWAY):
            self._not_asked = self._steps
            return Wants(NEVER, 1)
        if self._steps < FIRST or self._steps >= self._asked + self._asked_anyway:
            self._asked = self._steps
            return Wants(1, 1)
        steps = min(self._asked + self._asked_anyway - self._steps, LONGEST_REST)
        if self._context < LONGEST_CONTEXT or self._context == NEVER:
            return Wants(self._context, steps)
        if not self._foresight.following:
            # What was seen behind four tokens in a row is still there a token or two later.
            return Wants(LONGEST_CONTEXT, steps, every=LOOKS_APART)
        unripe = min(self._foresight.missing(self._context), self._foresight.following)
        return Wants(NEVER, min(unripe, steps)) if unripe else Wants(LONGEST_CONTEXT, 1)

    def _renew(self) -> None:
        self._renewed = self._steps
        self._expected.clear()
        self._context = self._least_context()
        self.most = self._ranks_worth_a_look()

    def _least_context(self) -> int:
        rate, asking = self._rate(), 0.0
        if min(self._besides["rest"].weight, self._besides["plain"].weight) >= KNOWN:
            seconds = self._besides["plain"].value - self._besides["rest"].value
            asking = rate * seconds
            self._asked_anyway = min(max(1, round(seconds / (ASKING * self.plain_seconds()))), ASKED_ANYWAY)
        for context in range(1, NEVER):
            kind, price = self._kind((context, 0, False)), MARGIN + asking
            for length in LENGTHS:
                if kind.gain(length, length) > price + rate * (self.seconds(1 + length) - self.seconds(1)):
                    return context
        return NEVER

    def _ranks_worth_a_look(self) -> int:
        """One at least; of the others those of which a single token may be worth its slot, behind a long context."""
        slot = self._rate() * (self.seconds(3) - self.seconds(2))
        ranks = range(1, MOST)
        return next((rank for rank in ranks if self._kind((LONGEST_KIND, min(rank, 3), False)).adds[0] < slot), MOST)

    def offered(self, guesses: Sequence[Guess]) -> Offer:
        """What the pool says may come now, the likeliest first."""
        self._foresight.look(guesses)
        context = self._foresight.context
        return [
            (guess.tail, self._kind((context(guess), min(rank, 3), guess.source == "window")))
            for rank, guess in enumerate(guesses[:MOST])
        ]

    def pick(self, offer: Offer) -> Pick:
        """Those of a step that bring the most."""
        if not offer:
            return NOTHING
        rate = self._rate()
        plain = self.seconds(1)
        if sum(kind.hope() for _, kind in offer) < MARGIN + rate * (self.seconds(2) - plain):
            return NOTHING
        best, picked = MARGIN, NOTHING
        for length in LENGTHS:
            gained, slots, tails = 0.0, 1, list[Tail]()
            for count, (whole, kind) in enumerate(offer, start=1):
                tail = whole[:length]
                gain = kind.gain(len(tail), length)
                if gain < NEGLIGIBLE:
                    break
                gained += gain
                slots += len(tail) - max((agreeing(tail, other) for other in tails), default=0)
                tails.append(tail)
                value = gained - rate * (self.seconds(slots) - plain)
                if value > best:
                    best, picked = value, Pick(count, length)
        return picked

    def came(self, tokens: Tail, steps: int) -> None:
        """Take in what so many steps emitted: one, or several of plain decoding."""
        self._steps += steps
        self._foresight.take(tokens, steps)

    def learn(self, offer: Offer, following: Tail) -> None:
        """See how right guesses were, tried or not, by the `LONGEST` tokens that followed."""
        right_before = 0
        for tail, kind in offer:
            right = agreeing(tail, following)
            kind.learn(len(tail), right_before, right)
            right_before = max(right_before, right)

    def took(self, slots: int, tokens: int, seconds: float, besides: float) -> None:
        """Take in a step without a window that asked the pool.

        Args:
            slots: of its pass.
            tokens: how many it emitted.
            seconds: what it took in all.
            besides: what of that was not its pass.
        """
        # A machine that pauses once must not have all such steps look dear from then on.
        self._besides["guesses" if slots > 1 else "plain"].add(min(besides, self._cost(slots)))
        if slots > 1:
            self._aftermath.disturb()
        else:
            self._aftermath.add([seconds - besides])
        self._since_guesses = 0 if slots > 1 else self._since_guesses + 1
        if self._since_guesses == OPEN_AGAIN:
            self._besides["guesses"], self._aftermath.extra = Mean(REMEMBERED), Mean(REMEMBERED)
        self._count(1, tokens, seconds)

    def rested(self, times: Sequence[float], passes: Sequence[float]) -> None:
        """Take in steps that did not ask the pool, one after the other: the seconds of each, and those of its pass."""
        count, seconds, most = len(times), sum(times), self._cost(1)
        besides = sum(min(one - own, most) for one, own in zip(times, passes, strict=True))
        self._besides["rest"].add(besides / count, count)
        self._aftermath.add(passes)
        self._count(count, count, seconds)

    def _count(self, steps: int, tokens: int, seconds: float) -> None:
        fading = FADING**steps
        self._tokens = fading * self._tokens + tokens
        self._seconds = fading * self._seconds + seconds
        self._reached = 0.0

    def seconds(self, slots: int) -> float:
        """What a step of so many slots is expected to take: its pass, all that is done besides, and what follows."""
        expected = self._expected.get(slots)
        if expected is None:
            ways = ("guesses", "plain", "rest") if slots > 1 else ("plain", "rest")
            known = next((self._besides[way] for way in ways if self._besides[way].weight >= KNOWN), Mean(1))
            own = self._plain_pass() if slots == 1 else self._cost(slots) + self._what_follows()
            expected = self._expected[slots] = own + known.value
        return expected

    def plain_seconds(self) -> float:
        """What a step of plain decoding is expected to take, which does not ask the pool."""
        resting = self._besides["rest"]
        return self._plain_pass() + (resting if resting.weight >= KNOWN else self._besides["plain"]).value

    def _plain_pass(self) -> float:
        settled = self._aftermath.settled
        return settled.value if settled.weight >= KNOWN else self._cost(1)

    def _what_follows(self) -> float:
        extra = self._aftermath.extra
        return max(0.0, extra.value) if extra.weight >= KNOWN else 0.0

    def _rate(self) -> float:
        if not self._reached:
            # What plain decoding reaches can be had at any time, so it is the least that a slot's time is worth.
            self._reached = max(self._tokens / self._seconds if self._seconds else 0.0, 1 / self.plain_seconds())
        return self._reached

    def _kind(self, key: tuple[int, int, bool]) -> Kind:
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(*key)
        return kind
