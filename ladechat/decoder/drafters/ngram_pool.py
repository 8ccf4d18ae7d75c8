"""The n-gram pool: n-grams of the window, the prompt and the accepted text, to make guesses from."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ladechat.decoder.common_prefix import common_prefix
from ladechat.decoder.drafters.drafter import EARLIER

Ngram = tuple[int, ...]
Tail = tuple[int, ...]

ACCEPTED = "accepted"
"""The source of n-grams of the answer itself."""
CAPACITY_BYTES = 32 * 1024 * 1024
SEARCHED = 64
"""Of the n-grams that begin with the same two tokens, so many of the latest are searched for a longer context."""
LONGEST_CONTEXT = 4
"""The most of the last tokens to match: a continuation of a longer match is likelier to be right."""
BYTES_PER_NGRAM = 1200
BYTES_PER_TOKEN = 40
"""An upper estimate of an n-gram's memory in two dictionaries; a test measures it."""


SHARE_OF_OTHERS = 4
"""N-grams of the text make room too, once at most one n-gram in so many is from elsewhere."""


class Guess(NamedTuple):
    """A possible continuation: a tail, its n-gram's source, and how many of the text's last tokens matched, 1 to 4."""

    tail: Tail
    source: str
    context: int = 1


class _Entry(NamedTuple):
    """Facts about an n-gram: its source, the run in which it was new, and the serial number of its last addition."""

    source: str
    run: int
    added: int


Recent = dict[Ngram, _Entry]
"""N-grams with a common prefix, the latest added last."""


class NGramPool:
    """A bounded set of n-grams, by the tokens they begin with. The n-gram added the longest ago is evicted first; those
    of the text read last stay, unless there are hardly any others.

    With "the cat sat" and "cat sat down" in the pool, the guess after ``the cat`` is ``sat down``: "the cat sat"
    matches both tokens, and "cat sat down" lengthens the tail. Adding an n-gram again makes it the latest.

    It holds n-grams of any length, so nothing is lost when N changes. Each remembers the source that first added it;
    those of earlier runs have the source `EARLIER`, until the text of this run contains them too. All are indexed by
    their first token, those of three tokens or more also by their first two; longer matches are searched among the
    latter.

    Args:
        capacity_bytes: the most memory that it uses.
    """

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._capacity = capacity_bytes
        self._run = 0
        self._by_prefix: dict[Ngram, Recent] = {}
        """N-grams by their first token, and by their first two."""
        self._count = self._bytes = self._additions = 0
        self._longest = 0
        """The length of the longest n-gram ever added."""
        self._oldest: list[Ngram] = []
        """N-grams in the reverse order of eviction, as of `_sorted_at`; taken from the end."""
        self._sorted_at = 0
        self._text: Sequence[int] = ()
        """The text read last."""
        self._read: dict[int, int] = {}
        """For each N, how many of its tokens have been read."""

    def __len__(self) -> int:
        return self._count

    def begin_run(self) -> None:
        """Start a run: what the pool holds now counts as earlier."""
        self._run += 1

    def add(self, ngram: Sequence[int], source: str) -> bool:
        """Add an n-gram (two tokens or more), or make a known one the latest. Return True if it is new."""
        return self.add_each([tuple(ngram)], source) == 1

    def read(self, text: Sequence[int], end: int, ngram: int, source: str) -> None:
        """Add the n-grams of the first `end` tokens of a text, in order.

        N-grams of the common prefix with the text read last are not added again: as long as the text fits into the
        pool, they are in it. So the guesses tried first are those that the text or the window brought last, not those
        of a prompt that was sent again.
        """
        if text is not self._text:
            same = common_prefix(self._text, text)
            self._read = {length: min(read, same) for length, read in self._read.items()}
            self._text = text
        read = self._read.get(ngram, 0)
        if end > read:
            self.add_all(text[max(0, read - ngram + 1) : end], ngram, source)
            self._read[ngram] = end

    def add_all(self, tokens: Sequence[int], ngram: int, source: str) -> int:
        """Add every n-gram of a text, in order; return how many were new."""
        return self.add_each(_ngrams(tokens, ngram), source)

    def add_each(self, ngrams: Iterable[Ngram], source: str) -> int:
        """Add n-grams, in order; return how many were new."""
        before, by_prefix = self._count, self._by_prefix
        for ngram in ngrams:
            self._additions += 1
            recent = by_prefix.get(ngram[:1])
            if recent is None:
                recent = by_prefix[ngram[:1]] = {}
            known = recent.pop(ngram, None)
            if known is None:
                entry = _Entry(source, self._run, self._additions)
                self._count += 1
                self._bytes += _size(ngram)
                self._longest = max(self._longest, len(ngram))
            elif source == ACCEPTED and known.run != self._run:  # an earlier run's, now also in this one's text
                entry = _Entry(source, self._run, self._additions)
            else:
                entry = _Entry(known.source, known.run, self._additions)
            recent[ngram] = entry
            if len(ngram) > 2:
                pair = by_prefix.get(ngram[:2])
                if pair is None:
                    pair = by_prefix[ngram[:2]] = {}
                elif known is not None:
                    del pair[ngram]
                pair[ngram] = entry
        added = self._count - before
        while self._bytes > self._capacity:
            self._forget_oldest()
        return added

    def guesses(self, last: Sequence[int], length: int, limit: int) -> list[Guess]:
        """Return up to `limit` tails of at most `length` tokens that have followed the end of a text, `last`.

        The longest matches come first, and of equal ones the latest added. A tail that is a prefix of an earlier one
        would verify nothing new and is left out.
        """
        found: list[Guess] = []
        if length < 1 or limit < 1:
            return found
        begun: set[Tail] = set()
        text = tuple(last[-LONGEST_CONTEXT:])
        for context in range(min(len(text), self._longest - 1), 0, -1):
            for ngram, entry in self._continuations(text[-context:]):
                tail = ngram[context : context + length]
                if tail in begun:
                    continue
                if context > 1 and len(tail) < length:
                    tail, entry = self._lengthened(text[-1], tail, length, entry)
                found.append(Guess(tail, entry.source if entry.run == self._run else EARLIER, context))
                if len(found) == limit:
                    return found
                begun.update(tail[:end] for end in range(1, len(tail) + 1))
        return found

    def ngrams(self) -> Iterator[Ngram]:
        """Yield all n-grams, the latest added last."""
        everything = [one for prefix, recent in self._by_prefix.items() if len(prefix) == 1 for one in recent.items()]
        everything.sort(key=lambda one: one[1].added)
        return (ngram for ngram, _ in everything)

    def clear(self) -> None:
        """Remove everything."""
        self._by_prefix.clear()
        self._oldest.clear()
        self._count = self._bytes = 0
        self._text, self._read = (), {}

    def _lengthened(self, token: int, tail: Tail, length: int, entry: _Entry) -> tuple[Tail, _Entry]:
        """Lengthen a short tail of a long match by the latest n-gram that begins with `token`, the text's last, and
        this tail; return it unchanged if there is none.
        """
        longer = next(self._continuations((token, *tail)), None)
        return (tail, entry) if longer is None else (longer[0][1 : 1 + length], longer[1])

    def _continuations(self, tokens: Ngram) -> Iterator[tuple[Ngram, _Entry]]:
        """Return the n-grams that begin with these tokens and are longer, the latest added first."""
        count = len(tokens)
        recent = self._by_prefix.get(tokens[:2])
        if recent is None:
            return iter(())
        if count <= 2:
            return reversed(recent.items())
        latest = islice(reversed(recent.items()), SEARCHED)
        return (one for one in latest if len(one[0]) > count and one[0][:count] == tokens)

    def _forget_oldest(self) -> None:
        ngram = self._least_recently_added()
        self._count -= 1
        self._bytes -= _size(ngram)
        for prefix in {ngram[:1], ngram[:2]} - {ngram}:
            recent = self._by_prefix[prefix]
            del recent[ngram]
            if not recent:
                del self._by_prefix[prefix]

    def _least_recently_added(self) -> Ngram:
        """Return the next n-gram to evict. Sorts only when its list is used up: most pools never evict any.

        N-grams added since, for the first time or again, are younger than all in the list, and skipped. Those of the
        text, which no turn adds again, are evicted only where they leave too little room for others.
        """
        while True:
            if not self._oldest:
                said = {one for ngram, read in self._read.items() for one in _ngrams(self._text[:read], ngram)}
                others = [ngram for ngram in self.ngrams() if ngram not in said]
                if len(others) <= self._count // SHARE_OF_OTHERS:
                    others += [ngram for ngram in self.ngrams() if ngram in said]
                self._oldest, self._sorted_at = others[::-1], self._additions
            ngram = self._oldest.pop()
            if self._by_prefix[ngram[:1]][ngram].added <= self._sorted_at:
                return ngram


def _ngrams(tokens: Sequence[int], ngram: int) -> Iterator[Ngram]:
    """Return every n-gram of a text, in order."""
    return zip(*(tokens[offset:] for offset in range(ngram)), strict=False)


def _size(ngram: Ngram) -> int:
    return BYTES_PER_NGRAM + BYTES_PER_TOKEN * (len(ngram) - 1)
