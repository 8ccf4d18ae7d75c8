"""The n-gram pool: what the window, the prompt and the accepted text have taught, ready to be guessed again."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence, Set
from itertools import islice
from typing import NamedTuple

from ladechat.decoder.step import Source

Tail = tuple[int, ...]

CAPACITY_BYTES = 32 * 1024 * 1024
LOOKED_AT = 64
"""Of the tails of a token, how many of the latest are looked at for several tokens: a frequent one has thousands."""
LONGEST_CONTEXT = 4
"""So many of the last tokens are looked for at most: what followed more of them is likelier to follow again."""
BYTES_PER_NGRAM = 1200
BYTES_PER_TOKEN = 40
"""What an n-gram takes in two ordered dictionaries, generously; a test measures it."""


class _Origin(NamedTuple):
    source: Source
    run: int


class Guess(NamedTuple):
    """What may follow: a tail, who brought it, and how many of the last tokens stood in front of it before, 1 to 4."""

    tail: Tail
    source: Source
    context: int = 1


Tails = OrderedDict[Tail, _Origin]
"""What has followed a token, the latest used last."""


class NGramPool:
    """A bounded map from a token to the tails that have followed it; the least recently used n-gram leaves first.

    N-grams of any length live side by side, so nothing is lost when N changes. Each remembers the source that first
    brought it; those that earlier runs brought have the source "earlier".

    Args:
        capacity_bytes: the most memory that it takes.
    """

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._capacity = capacity_bytes
        self._used = 0
        self._run = 0
        self._tails: dict[int, Tails] = {}
        self._recency: OrderedDict[tuple[int, Tail], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._recency)

    def begin_run(self) -> None:
        """From now on, what is here has been learnt earlier."""
        self._run += 1

    def add(self, ngram: Sequence[int], source: Source) -> bool:
        """Remember an n-gram (two tokens or more), or mark a known one as used just now. True if it is new."""
        key, tail = ngram[0], tuple(ngram[1:])
        tails = self._tails.get(key)
        if tails is None:
            tails = self._tails[key] = Tails()
        known = tail in tails
        if known:
            tails.move_to_end(tail)
            self._recency.move_to_end((key, tail))
        else:
            tails[tail] = _Origin(source, self._run)
            self._recency[key, tail] = None
            self._used += _size(tail)
            while self._used > self._capacity:
                self._forget_oldest()
        return not known

    def add_all(self, tokens: Sequence[int], ngram: int, source: Source) -> int:
        """Remember every n-gram of a text, in order; how many were new."""
        added = 0
        for start in range(len(tokens) - ngram + 1):
            added += self.add(tokens[start : start + ngram], source)
        return added

    def guesses(self, key: int, length: int, limit: int, before: Sequence[int] = ()) -> list[Guess]:
        """Up to `limit` tails of at most `length` tokens that have followed `key`, latest used first.

        Tails that have followed `key` where the last tokens of `before` stood in front of it come before all others,
        those that followed the most of them first: two tokens tell more than one. A tail that an earlier one begins
        with would verify nothing new and is left out.
        """
        found: list[Guess] = []
        tails = self._tails.get(key)
        if tails is None:
            return found
        begun: set[Tail] = {()}
        longest = min(len(before), LONGEST_CONTEXT - 1)
        for context in range(longest + 1, 0, -1):
            known = self._after(before[1 - context :], key, begun) if context > 1 else self._latest(tails)
            for tail, origin in known:
                if len(found) == limit:
                    return found
                cut = tail[: max(length, 0)]
                if cut not in begun:
                    found.append(Guess(cut, self._source(origin), context))
                    begun.update(cut[:end] for end in range(1, len(cut) + 1))
        return found

    def goes_on(self, tokens: Sequence[int]) -> bool:
        """Whether something is known to have followed these tokens, 1 to `LONGEST_CONTEXT` of them."""
        tails, rest = self._tails.get(tokens[0]), tuple(tokens[1:])
        if tails is None:
            return False
        count = len(rest)
        return any(tail[:count] == rest and len(tail) > count for tail in islice(reversed(tails), LOOKED_AT))

    def _after(self, before: Sequence[int], key: int, begun: Set[Tail]) -> Iterator[tuple[Tail, _Origin]]:
        """What has followed these tokens and `key`, each with the latest tail of `key` that goes on like it."""
        tails, between = self._tails.get(before[0]), (*before[1:], key)
        if tails is None:
            return
        count = len(between)
        for tail, origin in islice(self._latest(tails), LOOKED_AT):
            start = tail[count:]
            if tail[:count] == between and start not in begun:  # nothing at all is begun
                length, latest = len(start), islice(self._latest(self._tails[key]), LOOKED_AT)
                yield next((known for known in latest if known[0][:length] == start), (start, origin))

    def _latest(self, tails: Tails) -> Iterator[tuple[Tail, _Origin]]:
        return reversed(tails.items())

    def _source(self, origin: _Origin) -> Source:
        return origin.source if origin.run == self._run else "earlier"

    def successor(self, key: int) -> int | None:
        """The token that last followed `key`."""
        tails = self._tails.get(key)
        return next(reversed(tails))[0] if tails else None

    def ngrams(self) -> Iterator[tuple[int, ...]]:
        """Everything it holds, the latest used last."""
        return ((key, *tail) for key, tail in self._recency)

    def clear(self) -> None:
        """Forget everything."""
        self._tails.clear()
        self._recency.clear()
        self._used = 0

    def _forget_oldest(self) -> None:
        (key, tail), _ = self._recency.popitem(last=False)
        self._used -= _size(tail)
        del self._tails[key][tail]
        if not self._tails[key]:
            del self._tails[key]


def _size(tail: Tail) -> int:
    return BYTES_PER_NGRAM + BYTES_PER_TOKEN * len(tail)
