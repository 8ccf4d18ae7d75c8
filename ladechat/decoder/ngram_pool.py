"""The n-gram pool: what the window, the prompt and the accepted text have taught, ready to be guessed again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ladechat.decoder.step import Source

Ngram = tuple[int, ...]
Tail = tuple[int, ...]

CAPACITY_BYTES = 32 * 1024 * 1024
LOOKED_AT = 64
"""Of the n-grams that begin with the same two tokens, how many of the latest are looked at for more tokens."""
LONGEST_CONTEXT = 4
"""So many of the last tokens are looked for at most: what followed more of them is likelier to follow again."""
BYTES_PER_NGRAM = 1200
BYTES_PER_TOKEN = 40
"""What an n-gram takes in two dictionaries, generously; a test measures it."""


class Guess(NamedTuple):
    """What may follow: a tail, who brought it, and how many of the last tokens stood in front of it before, 1 to 4."""

    tail: Tail
    source: Source
    context: int = 1


Known = tuple[Source, int, int]
"""Of an n-gram: who brought it, in which run, and which of all uses was its last."""
Alike = dict[Ngram, Known]
"""N-grams that begin alike, the latest used last."""


class NGramPool:
    """A bounded memory of what has followed which tokens; the least recently used n-gram leaves first.

    N-grams of any length live side by side, so nothing is lost when N changes. Each remembers the source that first
    brought it; those that earlier runs brought have the source "earlier".

    An n-gram is found by its first token and, if it goes on behind them, by its first two. What has followed more is
    searched for among those: thousands of n-grams begin with a frequent token, few with the same two.

    Args:
        capacity_bytes: the most memory that it takes.
    """

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._capacity = capacity_bytes
        self._run = 0
        self._by_token: dict[int, Alike] = {}
        self._by_pair: dict[Ngram, Alike] = {}
        self._count = self._bytes = self._uses = 0
        self._longest = 0
        """How many tokens the longest n-gram ever had."""
        self._oldest: list[Ngram] = []
        """By use, the latest first, as it was when there had been `_sorted_at` uses."""
        self._sorted_at = 0

    def __len__(self) -> int:
        return self._count

    def begin_run(self) -> None:
        """From now on, what is here has been learnt earlier."""
        self._run += 1

    def add(self, ngram: Sequence[int], source: Source) -> bool:
        """Remember an n-gram (two tokens or more), or mark a known one as used just now. True if it is new."""
        return self.add_each([tuple(ngram)], source) == 1

    def add_all(self, tokens: Sequence[int], ngram: int, source: Source) -> int:
        """Remember every n-gram of a text, in order; how many were new."""
        text = tuple(tokens)
        return self.add_each([text[start : start + ngram] for start in range(len(text) - ngram + 1)], source)

    def add_each(self, ngrams: Iterable[Ngram], source: Source) -> int:
        """Remember n-grams, in order; how many were new. A step brings many, and one call for all takes less time."""
        by_token, by_pair, added = self._by_token, self._by_pair, 0
        for ngram in ngrams:
            self._uses += 1
            alike = by_token.setdefault(ngram[0], {})
            known = alike.pop(ngram, None)
            if known is None:
                known = source, self._run, self._uses
                added += 1
                self._count += 1
                self._bytes += _size(ngram)
                self._longest = max(self._longest, len(ngram))
            else:
                known = known[0], known[1], self._uses
            alike[ngram] = known
            if len(ngram) > 2:
                alike = by_pair.setdefault(ngram[:2], {})
                alike.pop(ngram, None)
                alike[ngram] = known
            while self._bytes > self._capacity:
                self._forget_oldest()
        return added

    def guesses(self, key: int, length: int, limit: int, before: Sequence[int] = ()) -> list[Guess]:
        """Up to `limit` tails of at most `length` tokens that have followed `key`, latest used first.

        Tails that have followed `key` where the last tokens of `before` stood in front of it come before all others,
        those that followed the most of them first: two tokens tell more than one. A tail that an earlier one begins
        with would verify nothing new and is left out.
        """
        found: list[Guess] = []
        if length < 1:
            return found
        begun: set[Tail] = set()
        last = (*before, key)[-LONGEST_CONTEXT:]
        for context in range(min(len(last), self._longest - 1), 0, -1):
            for ngram, known in self._going_on(last[-context:]):
                if len(found) == limit:
                    return found
                tail = ngram[context : context + length]
                if tail in begun:
                    continue
                if context > 1 and len(tail) < length:
                    # The tokens in front take places of this n-gram. One that has only `key` there may know more.
                    longer = next(self._going_on((key, *tail)), None)
                    if longer is not None:
                        tail, known = longer[0][1 : 1 + length], longer[1]
                source, run, _ = known
                found.append(Guess(tail, source if run == self._run else "earlier", context))
                for end in range(1, len(tail) + 1):
                    begun.add(tail[:end])
        return found

    def goes_on(self, tokens: Sequence[int]) -> bool:
        """Whether something is known to have followed these tokens, 1 to `LONGEST_CONTEXT` of them."""
        return next(self._going_on(tuple(tokens)), None) is not None

    def known_places(self, text: Sequence[int], context: int, start: int, places: Sequence[int]) -> list[int]:
        """Those of these places, behind the first `start` tokens of a text, where something is known to have followed
        the `context` tokens in front of them, 2 to `LONGEST_CONTEXT`. Mostly two of those tell that nothing is.
        """
        known = []
        for place in places:
            end = start + place
            first = end - context
            if first >= 0 and (text[first], text[first + 1]) in self._by_pair and self.goes_on(text[first:end]):
                known.append(place)
        return known

    def successor(self, key: int) -> int | None:
        """The token that last followed `key`."""
        latest = next(self._going_on((key,)), None)
        return None if latest is None else latest[0][1]

    def ngrams(self) -> Iterator[Ngram]:
        """Everything it holds, the latest used last."""
        everything = [one for alike in self._by_token.values() for one in alike.items()]
        everything.sort(key=_last_use)
        return (ngram for ngram, _ in everything)

    def clear(self) -> None:
        """Forget everything."""
        self._by_token.clear()
        self._by_pair.clear()
        self._oldest.clear()
        self._count = self._bytes = 0

    def _going_on(self, tokens: Ngram) -> Iterator[tuple[Ngram, Known]]:
        """The n-grams that begin with these tokens and go on behind them, latest used first."""
        count = len(tokens)
        alike = self._by_token.get(tokens[0]) if count == 1 else self._by_pair.get(tokens[:2])
        if alike is None:
            return iter(())
        if count <= 2:
            return reversed(alike.items())
        latest = islice(reversed(alike.items()), LOOKED_AT)
        return (one for one in latest if len(one[0]) > count and one[0][:count] == tokens)

    def _forget_oldest(self) -> None:
        ngram = self._least_recently_used()
        self._count -= 1
        self._bytes -= _size(ngram)
        _leave(self._by_token, ngram[0], ngram)
        if len(ngram) > 2:
            _leave(self._by_pair, ngram[:2], ngram)

    def _least_recently_used(self) -> Ngram:
        """Sorted once for thousands that leave, not kept in order at each use: most pools never lose any.

        What was used or came since is younger than all that were sorted; those used since are passed over.
        """
        while True:
            if not self._oldest:
                self._oldest, self._sorted_at = list(self.ngrams())[::-1], self._uses
            ngram = self._oldest.pop()
            *_, last_use = self._by_token[ngram[0]][ngram]
            if last_use <= self._sorted_at:
                return ngram


def _leave(found_by: dict[Any, Alike], beginning: int | Ngram, ngram: Ngram) -> None:
    alike = found_by[beginning]
    del alike[ngram]
    if not alike:
        del found_by[beginning]


def _last_use(one: tuple[Ngram, Known]) -> int:
    return one[1][2]


def _size(ngram: Ngram) -> int:
    return BYTES_PER_NGRAM + BYTES_PER_TOKEN * (len(ngram) - 1)
