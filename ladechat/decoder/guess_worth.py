"""Which of the pool's guesses are worth their slots: decided at every step.

A step that verifies guesses takes longer than a plain one, and may emit more. The most tokens per second come in the
long run from the choice, at each step, with the largest E[tokens] − λ · E[seconds], where λ is that rate itself
(Dinkelbach 1967, on the ratio of two sums; here it is what was reached of late). What a guess adds is learnt without
trying it: the text that follows says how much of it was right.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ladechat.decoder.ngram_pool import Guess, Tail

LENGTHS = (3, 7)
"""To how many tokens guesses may be cut."""
LONGEST = LENGTHS[-1]
MOST = 5
"""How many guesses a step verifies at most. Of those further down hardly one is right where none before it is."""

REMEMBERED = 60
"""Of how many guesses of one kind the mean is taken; older ones count less and less."""
ASSUMED = 3
"""As how many guesses what is assumed of a kind counts, before any was seen."""
FIRST_TOKEN = {1: 0.25, 2: 0.55}
"""The part of the guesses whose first token is assumed to be right, by context."""
BY_RANK, BY_TOKEN = 0.4, 0.85
"""What is assumed of the next guess, and of the next token, as a part of the one before."""
NEGLIGIBLE = 0.02
"""A guess that adds so few tokens, and those after it, are not looked at."""

RENEWED = 8
"""For so many steps what a step of each size takes is taken as known: to work it out takes its time too."""

SETTLING = 3
"""So many plain steps may be slower behind one that was not."""

OPEN_AGAIN = 200
"""After so many steps without guesses, what they take besides their pass is open again."""

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

    __slots__ = ("adds", "seen")

    def __init__(self, context: int, rank: int, of_window: bool) -> None:
        first = FIRST_TOKEN[context] * BY_RANK**rank * (0.5 if of_window else 1.0)
        self.adds = [first * BY_TOKEN**index for index in range(LONGEST)]
        self.seen = ASSUMED

    def learn(self, length: int, right_before: int, right: int) -> None:
        self.seen = min(self.seen + 1, REMEMBERED)
        for index in range(min(length, LONGEST)):
            self.adds[index] += ((right_before <= index < right) - self.adds[index]) / self.seen


class _Aftermath:
    """What a step that verified guesses costs the plain steps behind it.

    Passes of different sizes read the weights from different places where they are compiled, and push each other's out
    of the processor's cache: a plain pass is slower behind a larger one than behind its like.
    """

    def __init__(self) -> None:
        self.settled = Mean(REMEMBERED)
        """The seconds of plain steps behind plain ones."""
        self.extra = Mean(REMEMBERED)
        """By how many seconds all plain steps right behind one that verified guesses are longer."""
        self._plain_in_a_row = 0
        self._longer = 0.0

    def add(self, plain: bool, seconds: float) -> None:
        """The next step."""
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
        self._asked = 0
        self.forget_times()

    def forget_times(self) -> None:
        """What passes cost has changed: only what guesses yield is still known."""
        self._besides = {False: Mean(REMEMBERED), True: Mean(REMEMBERED)}
        self._aftermath = _Aftermath()
        self._tokens = self._seconds = 0.0
        self._expected: dict[int, float] = {}
        self._since_guesses = 0

    def pick(self, guesses: Sequence[Guess]) -> Pick:
        """Those of a step that bring the most, the likeliest first in `guesses`."""
        if not guesses:
            return NOTHING
        self._asked += 1
        if self._asked % RENEWED == 0:
            self._expected.clear()
        # What plain decoding reaches can be had at any time, so it is the least that a slot's time is worth.
        rate = max(self._tokens / self._seconds if self._seconds else 0.0, 1 / self.seconds(1))
        best, picked = 1 - rate * self.seconds(1), NOTHING
        for length in LENGTHS:
            expected, nodes = 1.0, set[Tail]()
            for count, guess in enumerate(guesses[:MOST], start=1):
                tail = guess.tail[:length]
                gain = sum(self._kind(guess, count - 1).adds[: len(tail)])
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
            self._kind(guess, rank).learn(len(guess.tail), right_before, right)
            right_before = max(right_before, right)

    def took(self, slots: int, tokens: int, seconds: float) -> None:
        """Take in what a step without a window took in all, and emitted."""
        cost = self._cost(slots)
        # Within limits: a machine that pauses once must not have all guesses look dear from then on.
        self._besides[slots > 1].add(min(max(seconds - cost, -cost / 2), cost / 2))
        self._aftermath.add(slots == 1, seconds)
        self._since_guesses = 0 if slots > 1 else self._since_guesses + 1
        if self._since_guesses == OPEN_AGAIN:
            self._besides[True], self._aftermath.extra = Mean(REMEMBERED), Mean(REMEMBERED)
        self._tokens = FADING * self._tokens + tokens
        self._seconds = FADING * self._seconds + seconds

    def seconds(self, slots: int) -> float:
        """What a step of so many slots is expected to take: its pass, all that is done besides, and what follows."""
        expected = self._expected.get(slots)
        if expected is None:
            expected = self._expected[slots] = self._work_out(slots)
        return expected

    def _work_out(self, slots: int) -> float:
        if slots == 1 and self._aftermath.settled.weight:
            return self._aftermath.settled.value
        besides = self._besides[slots > 1]
        own = self._cost(slots) + (besides if besides.weight >= ASSUMED else self._besides[False]).value
        known = self._aftermath.extra.weight >= ASSUMED
        return own if slots == 1 or not known else own + max(0.0, self._aftermath.extra.value)

    def _kind(self, guess: Guess, rank: int) -> _Kind:
        key = (guess.context, min(rank, 3), guess.source == "window")
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
