"""For how many steps the pool is left alone, where it is not asked at every one."""

import math

from ladechat.decoder.means import REMEMBERED, Mean

KNOWN_PLAIN, KNOWN = 32, 3
"""So many plain steps must have been seen, and so many rests, and tokens of steps with guesses, before a length is
chosen by them."""
FORGETTING = 1 - 1 / 240
"""What a plain step counts for each one after it."""


class RestLength:
    """Weighs what is done behind a rest against what is missed in it.

    A rest of r steps takes h seconds behind it, and half of it is missed, on average, where a stretch begins meanwhile
    in which guesses are right. If a step begins one with probability f, and a token takes v seconds less in it, that is
    h/r + f·v·r/2 seconds a step, the least for r = √(2h/(f·v)): the formula of Harris (1913) for the size of an order.
    What the next passes lose for it counts in h.
    """

    def __init__(self) -> None:
        self._behind, self._saved = Mean(REMEMBERED), Mean(REMEMBERED)
        self._plain_steps = self._begun = 0.0
        self._in_stretch = False

    def took_behind(self, seconds: float) -> None:
        """Take in how long it took from the end of a rest until the next step began."""
        self._behind.add(seconds)

    def plain(self, steps: int) -> None:
        """Take in steps that verified no guess."""
        fading = FORGETTING**steps
        self._plain_steps = self._plain_steps * fading + steps
        self._begun *= fading
        self._in_stretch = False

    def guessed(self, tokens: int, saved: float) -> None:
        """Take in a step that verified guesses, and by how many seconds it was faster than plain ones."""
        right = tokens > 1
        self._begun += right and not self._in_stretch
        self._in_stretch = right
        self._saved.add(saved / tokens, tokens)

    def best(self, asking: float, longest: int, lost: float = 0.0) -> int | None:
        """How many steps to rest; 0 where it is better to ask at each; None before that is known.

        Args:
            asking: the seconds that it takes to ask.
            longest: the longest rest there may be, 1 at least.
            lost: the seconds that plain passes lose for each one of something else before them.
        """
        if self._plain_steps < KNOWN_PLAIN or min(self._saved.weight, self._behind.weight) < KNOWN:
            return None
        missed = self._begun / self._plain_steps * max(0.0, self._saved.value)
        behind = (1 + lost) * self._behind.value
        steps = max(1, round(min(math.sqrt(2 * behind / missed), longest))) if missed else longest
        return 0 if asking < behind / steps + missed * steps / 2 else steps
