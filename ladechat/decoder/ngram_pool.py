"""The n-gram pool: what the window, the prompt and the accepted text have taught, ready to be guessed again."""

from collections import OrderedDict
from collections.abc import Sequence

from ladechat.decoder.step import Source

Tail = tuple[int, ...]


class NGramPool:
    """A bounded map from a token to the tails that have followed it; the least recently used n-gram leaves first.

    N-grams of any length live side by side, so nothing is lost when N changes. Each remembers the source that first
    brought it.

    Args:
        capacity: the most n-grams held.
    """

    def __init__(self, capacity: int = 65_536) -> None:
        self.capacity = capacity
        self._tails: dict[int, OrderedDict[Tail, Source]] = {}
        self._recency: OrderedDict[tuple[int, Tail], None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._recency)

    def add(self, ngram: Sequence[int], source: Source) -> bool:
        """Remember an n-gram (two tokens or more), or mark a known one as used just now. True if it is new."""
        key, tail = ngram[0], tuple(ngram[1:])
        tails = self._tails.setdefault(key, OrderedDict())
        known = tail in tails
        if known:
            tails.move_to_end(tail)
            self._recency.move_to_end((key, tail))
        else:
            tails[tail] = source
            self._recency[key, tail] = None
            if len(self._recency) > self.capacity:
                self._forget_oldest()
        return not known

    def add_all(self, tokens: Sequence[int], ngram: int, source: Source) -> int:
        """Remember every n-gram of a text, in order; how many were new."""
        return sum(self.add(tokens[i : i + ngram], source) for i in range(len(tokens) - ngram + 1))

    def guesses(self, key: int, length: int, limit: int) -> list[tuple[Tail, Source]]:
        """Up to `limit` tails of at most `length` tokens that have followed `key`, latest used first.

        A tail that an earlier one begins with would verify nothing new and is left out.
        """
        found: list[tuple[Tail, Source]] = []
        begun: set[Tail] = {()}
        for tail, source in reversed(self._tails.get(key, {}).items()):
            if len(found) == limit:
                break
            guess = tail[: max(length, 0)]
            if guess not in begun:
                found.append((guess, source))
                begun.update(guess[:end] for end in range(1, len(guess) + 1))
        return found

    def successor(self, key: int) -> int | None:
        """The token that last followed `key`."""
        tails = self._tails.get(key)
        return next(reversed(tails))[0] if tails else None

    def clear(self) -> None:
        """Forget everything."""
        self._tails.clear()
        self._recency.clear()

    def _forget_oldest(self) -> None:
        (key, tail), _ = self._recency.popitem(last=False)
        del self._tails[key][tail]
        if not self._tails[key]:
            del self._tails[key]
