"""What guesses of one kind have added so far."""

import math
from itertools import accumulate

LENGTHS = (3, 7)
"""To how many tokens guesses may be cut."""
LONGEST = LENGTHS[-1]

LATELY = 60
"""Of how many guesses of one kind the mean is taken: older ones count less and less, for a text changes."""
FIRST_TOKEN = {1: 0.25, 2: 0.5, 3: 0.65, 4: 0.7, 5: 0.8, 6: 0.9}
"""The part of the guesses whose first token is assumed to be right, by context."""
BY_RANK, BY_TOKEN = 0.4, 0.85
"""What is assumed of the next guess, and of the next token, as a part of the one before."""
AS_ASSUMED = 5
"""So many guesses would have been as right as is assumed, before it is believed that a text is another one."""
ALIKE = 0.02
"""Odds that differ by no more than this part say the same: to assume others of all kinds takes time."""
DOUBT = 0.5
"""By so many standard errors expectations are taken to be too high: the best of several is often one that is."""


class Kind:
    """Guesses of one context, rank and source: how often each of their tokens adds one to what those before gave.

    What is assumed counts as much as one guess that was seen first.

    Attributes:
        adds: for each of their tokens, the part of them that have one there which adds one.
        first: the part of them whose first token adds one, as it is assumed of any text.
    """

    __slots__ = ("_assumed", "_counted", "_seen", "_squares", "_worth", "adds", "first")

    def __init__(self, context: int, rank: int, of_window: bool) -> None:
        self.first = FIRST_TOKEN[context] * BY_RANK**rank * (0.5 if of_window else 1.0)
        self._assumed, self.adds, self._squares = [0.0] * LONGEST, [0.0] * LONGEST, [0.0] * len(LENGTHS)
        self._counted = [1.0] * LONGEST
        """What part of `adds` is what was assumed."""
        self._seen = 1
        self._worth: tuple[list[float], dict[int, float]] | None = None
        self.assume(odds=1.0)

    def assume(self, odds: float) -> None:
        """Assume that tokens are right more often than in any text, by this factor of their odds, or less often."""
        first, by_token = _at_odds(self.first, odds), _at_odds(BY_TOKEN, odds)
        before, self._assumed = self._assumed, [first * by_token**index for index in range(LONGEST)]
        for index, (one, other) in enumerate(zip(self._assumed, before, strict=True)):
            self.adds[index] += (one - other) * self._counted[index]
        for which, cut in enumerate(LENGTHS):
            one, other = _square(sum(self._assumed[:cut]), cut), _square(sum(before[:cut]), cut)
            self._squares[which] += (one - other) * self._counted[cut - 1]
        self._worth = None

    def learn(self, length: int, right_before: int, right: int) -> None:
        """One of so many tokens had so many right, and those offered before it at most so many."""
        self._seen = min(self._seen + 1, LATELY)
        for index in range(min(length, LONGEST)):
            self.adds[index] += ((right_before <= index < right) - self.adds[index]) / self._seen
            self._counted[index] *= 1 - 1 / self._seen
        for which, cut in enumerate(LENGTHS):
            if cut > length:
                break
            added = max(0, min(right, cut) - right_before)
            self._squares[which] += (added * added - self._squares[which]) / self._seen
        self._worth = None

    @property
    def seen(self) -> float:
        """How many were seen, of late."""
        return self._seen * (1 - self._counted[0])

    @property
    def right(self) -> float:
        """Of how many of these the first token added one."""
        return self._seen * max(0.0, self.adds[0] - self._counted[0] * self._assumed[0])

    def gain(self, tokens: int, cut: int) -> float:
        """What one of so many tokens adds at least, it may be assumed; `cut` is that one of `LENGTHS` it was cut to."""
        sums, doubts = self._worth or self._sum_up()
        return sums[tokens] - doubts[cut]

    def hope(self) -> float:
        """What a whole one adds on average."""
        return (self._worth or self._sum_up())[0][-1]

    def _sum_up(self) -> tuple[list[float], dict[int, float]]:
        sums = [0.0, *accumulate(self.adds)]
        doubts = {
            cut: DOUBT * math.sqrt(max(0.0, square - sums[cut] ** 2) / self._seen)
            for cut, square in zip(LENGTHS, self._squares, strict=True)
        }
        self._worth = sums, doubts
        return self._worth


class Kinds:
    """Kinds of guesses, by their context, rank and whether a window brought them.

    Where those of one kind are right more often than is assumed, those of the others are too: a text that repeats
    itself does so behind one token as behind four.
    """

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, int, bool], Kind] = {}
        self._odds = 1.0

    def __call__(self, context: int, rank: int = 0, of_window: bool = False) -> Kind:
        """Those of a context and a rank."""
        kind = self._kinds.get((context, rank, of_window))
        if kind is None:
            kind = self._kinds[context, rank, of_window] = Kind(context, rank, of_window)
            kind.assume(self._odds)
        return kind

    def compare(self) -> None:
        """Assume of all what was seen of the likeliest guesses, as far as that is enough to say it."""
        seen = assumed = right = 0.0
        for (_, rank, of_window), kind in self._kinds.items():
            if not rank and not of_window:
                seen += kind.seen
                assumed += kind.first * kind.seen
                right += kind.right
        if seen:
            part = assumed / seen
            odds = _odds((right + AS_ASSUMED * part) / (seen + AS_ASSUMED)) / _odds(part)
            if abs(odds - self._odds) > ALIKE * self._odds:
                self._odds = odds
                for kind in self._kinds.values():
                    kind.assume(odds)


def _odds(part: float) -> float:
    return part / (1 - part)


def _at_odds(part: float, factor: float) -> float:
    """A part whose odds are multiplied."""
    return part * factor / (1 - part + part * factor)


def _square(expected: float, length: int) -> float:
    """What is assumed of the square of the tokens that a guess adds: between "always so many" and "all or nothing"."""
    return 0.8 * expected**2 + 0.2 * length * expected
