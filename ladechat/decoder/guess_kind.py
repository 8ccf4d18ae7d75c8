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
DOUBT = 0.5
"""By so many standard errors expectations are taken to be too high: the best of several is often one that is."""


class Kind:
    """Guesses of one context, rank and source: how often each of their tokens adds one to what those before gave.

    Attributes:
        adds: for each of their tokens, the part of them that have one there which adds one.
    """

    __slots__ = ("_seen", "_squares", "_worth", "adds")

    def __init__(self, context: int, rank: int, of_window: bool) -> None:
        first = FIRST_TOKEN[context] * BY_RANK**rank * (0.5 if of_window else 1.0)
        self.adds = [first * BY_TOKEN**index for index in range(LONGEST)]
        expected = [sum(self.adds[:length]) for length in LENGTHS]
        # Between "always so many" and "all or nothing".
        self._squares = [0.8 * one**2 + 0.2 * length * one for one, length in zip(expected, LENGTHS, strict=True)]
        self._seen = 1
        self._worth: tuple[list[float], dict[int, float]] | None = None

    def learn(self, length: int, right_before: int, right: int) -> None:
        """One of so many tokens had so many right, and those offered before it at most so many."""
        self._seen = min(self._seen + 1, LATELY)
        for index in range(min(length, LONGEST)):
            self.adds[index] += ((right_before <= index < right) - self.adds[index]) / self._seen
        for which, cut in enumerate(LENGTHS):
            if cut > length:
                break
            added = max(0, min(right, cut) - right_before)
            self._squares[which] += (added * added - self._squares[which]) / self._seen
        self._worth = None

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
