"""An index of earlier occurrences of the same tokens, as LZ77 compressors use it to find matches."""

from collections.abc import Sequence

NOWHERE = 0
"""No earlier place: no run ends there."""


class Places:
    """The places where each run of `length` tokens ended, in a list that grows at its end and may be cut there.

    A place is the number of tokens before it, so it is also the index of the token that follows. In ``a b c a b`` the
    run ``a b`` ends at the places 2 and 5, and `before[5]` is 2.

    Attributes:
        before: for each place the latest earlier one where the same run ended, or `NOWHERE`.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._latest: dict[tuple[int, ...], int] = {}
        self.before: list[int] = [NOWHERE]

    def read(self, tokens: Sequence[int]) -> None:
        """Index the new tokens: `tokens` begins with all that have been read before."""
        length, latest, before = self._length, self._latest, self.before
        place = len(before)
        while place < length and place <= len(tokens):  # too near the beginning for a whole run
            before.append(NOWHERE)
            place += 1
        new = tokens[place - length :]
        for run in zip(*(new[offset:] for offset in range(length)), strict=False):
            before.append(latest.get(run, NOWHERE))
            latest[run] = place
            place += 1

    def cut(self, tokens: Sequence[int], count: int) -> None:
        """Forget all but the first `count` of the tokens read."""
        for place in range(len(self.before) - 1, count, -1):
            earlier = self.before.pop()
            if place >= self._length:
                run = tuple(tokens[place - self._length : place])
                if earlier == NOWHERE:
                    del self._latest[run]
                else:
                    self._latest[run] = earlier
