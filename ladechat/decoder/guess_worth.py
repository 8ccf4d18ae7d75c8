"""Which of the pool's guesses are worth their slots: decided at every step.

A step that verifies guesses takes longer than a plain one, and may emit more. The most tokens per second come in the
long run from the choice, at each step, with the largest E[tokens] − λ · E[seconds], where λ is that rate itself
(Dinkelbach 1967, on the ratio of two sums; here it is what was reached of late). What a guess adds is learnt without
trying it: the text that follows says how much of it was right.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ladechat.decoder.ngram_pool import LONGEST_CONTEXT, Guess, Tail

LENGTHS = (3, 7)
"""To how many tokens guesses may be cut."""
LONGEST = LENGTHS[-1]
MOST = 5
"""How many guesses a step verifies at most. Of those further down hardly one is right where none before it is."""

REMEMBERED = 60
"""Of how many guesses of one kind the mean is taken; older ones count less and less."""
ASSUMED = 3
"""As how many guesses what is assumed of a kind counts, before any was seen."""
FIRST_TOKEN = {1: 0.25, 2: 0.5, 3: 0.65, 4: 0.75}
"""The part of the guesses whose first token is assumed to be right, by context."""
BY_RANK, BY_TOKEN = 0.4, 0.85
"""What is assumed of the next guess, and of the next token, as a part of the one before."""
NEGLIGIBLE = 0.02
"""A guess that adds so few tokens, and those after it, are not looked at."""

MARGIN = 0.05
"""By how many tokens guesses must be expected to be better than none: the best of several expectations is often one
that is too high."""

RENEWED = 8
"""For so many steps what a step of each size takes is taken as known: to work it out takes its time too."""

SELDOM, SELDOMER = 16, 64
"""One step in so many asks the pool whether that pays or not, and one does not."""

FIRST = 32
"""The first steps all ask: nothing is known yet."""

NEVER = LONGEST_CONTEXT + 1
"""A context that nothing has."""

OPEN_AGAIN = 200
"""After so many steps that asked and tried no guess, what they take besides their pass is open again."""

SETTLING = 6
"""So many plain passes may be slower behind one that was not."""

FADING = 0.99
"""What a step counts, in the rate of late, for each step after it."""


class Pick(NamedTuple):
    """The first `number` guesses, cut to `length` tokens."""

    number: int
    length: int


NOTHING = Pick(0, 0)


class Mean:
    """A mean that forgets: a value counts as if at most `memory` had been seen."""

    __slots__ = ("_memory", "value", "weight")

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self.value = self.weight = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Take a value in."""
        self.weight = min(self.weight + weight, self._memory)
        self.value += (value - self.value) * min(1.0, weight / self.weight)


class _Kind:
    """Guesses of one context, rank and source: how often each of their tokens adds one to what those before gave."""

    __slots__ = ("adds", "hope", "seen")

    def __init__(self, context: int, rank: int, of_window: bool) -> None:
        first = FIRST_TOKEN[context] * BY_RANK**rank * (0.5 if of_window else 1.0)
        self.adds = [first * BY_TOKEN**index for index in range(LONGEST)]
        self.hope = sum(self.adds)
        self.seen = ASSUMED

    def learn(self, length: int, right_before: int, right: int) -> None:
        self.seen = min(self.seen + 1, REMEMBERED)
        for index in range(min(length, LONGEST)):
            self.adds[index] += ((right_before <= index < right) - self.adds[index]) / self.seen
        self.hope = sum(self.adds)


class _Aftermath:
    """What a step that verified guesses costs the plain steps behind it.

    They read all weights anew, and what a processor's cache has lost of them meanwhile takes them longer: more of it,
    the longer the step before took.
    """

    def __init__(self) -> None:
        self.settled = Mean(REMEMBERED)
        """The seconds of plain passes behind plain ones."""
        self.extra = Mean(REMEMBERED)
        """By how many seconds all plain passes right behind one with guesses are longer."""
        self._plain_in_a_row = 0
        self._longer = 0.0

    def add(self, plain: bool, seconds: float) -> None:
        """The next pass."""
        if not plain:
            if self._plain_in_a_row < SETTLING:  # else it was added when they had settled
                self.extra.add(self._longer)
            self._plain_in_a_row, self._longer = 0, 0.0
            return
        self._plain_in_a_row += 1
        if self._plain_in_a_row > SETTLING:
            self.settled.add(seconds)
        elif self.settled.weight:
            usual = self.settled.value
            self._longer += min(max(seconds - usual, -usual), usual)
            if self._plain_in_a_row == SETTLING:
                self.extra.add(self._longer)
                self._longer = 0.0


class GuessWorth:
    """Learns what guesses yield, and picks those of a step.

    Args:
        cost: the seconds of a pass of so many slots, here and now.
    """

    def __init__(self, cost: Callable[[int], float]) -> None:
        self._cost = cost
        self._kinds: dict[tuple[int, int, bool], _Kind] = {}
        self._steps = self._context = 0
        self.forget_times()

    def forget_times(self) -> None:
        """What passes cost has changed: only what guesses yield is still known."""
        self._besides = {of: Mean(REMEMBERED) for of in ("rest", "plain", "guesses")}
        self._aftermath = _Aftermath()
        self._tokens = self._seconds = 0.0
        self._expected: dict[int, float] = {}
        self._since_guesses = 0

    def context(self) -> int:
        """So many of the last tokens must have been seen in a row for guesses that may be worth asking the pool for.

        To ask takes time too. Now and then any step asks, so that all kinds are judged, or none does, so that it is
        known what such a step takes.
        """
        self._steps += 1
        if self._steps % RENEWED == 1:
            self._expected.clear()
            self._context = self._least_context()
        if self._steps <= FIRST or self._steps % SELDOM == 0:
            return 1
        return NEVER if self._steps % SELDOMER == 1 else self._context

    def _least_context(self) -> int:
        rate, asking = self._rate(), 0.0
        if min(self._besides["rest"].weight, self._besides["plain"].weight) >= ASSUMED:
            asking = rate * (self._besides["plain"].value - self._besides["rest"].value)
        for context in range(1, LONGEST_CONTEXT + 1):
            adds = self._kind((context, 0, False)).adds
            gain = max(sum(adds[:length]) - rate * (self.seconds(1 + length) - self.seconds(1)) for length in LENGTHS)
            if gain > MARGIN + asking:
                return context
        return NEVER

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """Those of a step that bring the most, the likeliest first in `guesses`."""
        if not guesses:
            return NOTHING
        rate = self._rate()
        hope = sum(self._kind_of(guess, rank).hope for rank, guess in enumerate(guesses[:MOST]))
        if hope < MARGIN + rate * (self.seconds(2) - self.seconds(1)):
            return NOTHING
        best, picked = 1 - rate * self.seconds(1) + MARGIN, NOTHING
        for length in LENGTHS:
            expected, nodes = 1.0, set[Tail]()
            for count, guess in enumerate(guesses[:MOST], start=1):
                tail = guess.tail[:length]
                gain = sum(self._kind_of(guess, count - 1).adds[: len(tail)])
                if gain < NEGLIGIBLE:
                    break
                expected += gain
                nodes.update(tail[:end] for end in range(1, len(tail) + 1))
                value = expected - rate * self.seconds(1 + len(nodes))
                if value > best:
                    best, picked = value, Pick(count, length)
        return picked

    def learn(self, guesses: Sequence[Guess], following: Tail) -> None:
        """See how right guesses were, tried or not, by the `LONGEST` tokens that followed."""
        right_before = 0
        for rank, guess in enumerate(guesses[:MOST]):
            right = agreeing(guess.tail, following)
            self._kind_of(guess, rank).learn(len(guess.tail), right_before, right)
            right_before = max(right_before, right)

    def took(self, slots: int, tokens: int, seconds: float) -> None:
        """Take in what a step without a window took in all, that asked the pool, and how many tokens it emitted."""
        with_guesses = slots > 1
        self._time(self._besides["guesses" if with_guesses else "plain"], slots, seconds)
        self._since_guesses = 0 if with_guesses else self._since_guesses + 1
        if self._since_guesses == OPEN_AGAIN:
            self._besides["guesses"], self._aftermath.extra = Mean(REMEMBERED), Mean(REMEMBERED)
        self._count(tokens, seconds)

    def rested(self, seconds: float) -> None:
        """Take in what a step took that did not ask the pool."""
        self._time(self._besides["rest"], 1, seconds)
        self._count(1, seconds)

    def _time(self, besides: Mean, slots: int, seconds: float) -> None:
        cost = self._cost(slots)
        # Within limits: a machine that pauses once must not have all such steps look dear from then on.
        besides.add(min(max(seconds - cost, -cost / 2), cost))
        self._aftermath.add(slots == 1, seconds - besides.value)

    def _count(self, tokens: int, seconds: float) -> None:
        self._tokens = FADING * self._tokens + tokens
        self._seconds = FADING * self._seconds + seconds

    def seconds(self, slots: int) -> float:
        """What a step of so many slots is expected to take: its pass, all that is done besides, and what follows."""
        expected = self._expected.get(slots)
        if expected is None:
            ways = ("guesses", "plain", "rest") if slots > 1 else ("plain", "rest")
            known = next((self._besides[way] for way in ways if self._besides[way].weight >= ASSUMED), Mean(1))
            own = self._plain_pass() if slots == 1 else self._cost(slots) + self._what_follows()
            expected = self._expected[slots] = own + known.value
        return expected

    def plain_seconds(self) -> float:
        """What a step of plain decoding is expected to take, which does not ask the pool."""
        resting = self._besides["rest"]
        return self._plain_pass() + (resting if resting.weight >= ASSUMED else self._besides["plain"]).value

    def _plain_pass(self) -> float:
        settled = self._aftermath.settled
        return settled.value if settled.weight >= ASSUMED else self._cost(1)

    def _what_follows(self) -> float:
        extra = self._aftermath.extra
        return max(0.0, extra.value) if extra.weight >= ASSUMED else 0.0

    def _rate(self) -> float:
        # What plain decoding reaches can be had at any time, so it is the least that a slot's time is worth.
        return max(self._tokens / self._seconds if self._seconds else 0.0, 1 / self.plain_seconds())

    def _kind_of(self, guess: Guess, rank: int) -> _Kind:
        return self._kind((guess.context, min(rank, 3), guess.source == "window"))

    def _kind(self, key: tuple[int, int, bool]) -> _Kind:
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _Kind(*key)
        return kind


def agreeing(tail: Tail, following: Tail) -> int:
    """How many tokens two texts begin with in common."""
    count = 0
    for one, other in zip(tail, following, strict=False):
        if one != other:
            break
        count += 1
    return count
