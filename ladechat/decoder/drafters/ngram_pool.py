"""The n-gram pool: what the window, the prompt and the accepted text have taught, ready to be guessed again."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ladechat.decoder.common_prefix import common_prefix
from ladechat.decoder.drafters.drafter import EARLIER

Ngram = tuple[int, ...]
Tail = tuple[int, ...]

ACCEPTED = "accepted"
"""The source of what the answer itself has."""
CAPACITY_BYTES = 32 * 1024 * 1024
SEARCHED = 64
"""Of the n-grams that begin with the same two tokens, how many of the latest are searched for a longer context."""
LONGEST_CONTEXT = 4
"""So many of the last tokens are matched at most: what followed more of them is likelier to follow again."""
BYTES_PER_NGRAM = 1200
BYTES_PER_TOKEN = 40
"""What an n-gram takes in two dictionaries, generously; a test measures it."""


SHARE_OF_OTHERS = 4
"""Where more than all but one part in so many is of the text, n-grams of the text make room too."""


class Guess(NamedTuple):
    """What may follow: a tail, the source of its n-gram, and how many of the text's last tokens it matched, 1 to 4."""

    tail: Tail
    source: str
    context: int = 1


class _Entry(NamedTuple):
    """Of an n-gram: its source, the run in which it was new, and when it was added last, as a number that grows."""

    source: str
    run: int
    added: int


Recent = dict[Ngram, _Entry]
"""N-grams that begin alike, the latest added last."""


class NGramPool:
    """A bounded memory of what has followed which tokens; the n-gram that was added the longest ago leaves first. Those
    of the text that was read last stay, unless hardly anything else is left to leave.

    With "the cat sat" and "cat sat down" in the pool, the guess after ``the cat`` is ``sat down``: "the cat sat"
    matches both tokens, and "cat sat down" lengthens what follows. To add an n-gram again makes it the latest.

    N-grams of any length live side by side, so nothing is lost when N changes. Each remembers the source that first
    brought it; those of earlier runs have the source `EARLIER`, until the text of this run has them too. All are
    indexed by their first token, those of three tokens or more also by their first two; matches of more tokens are
    searched for among these.

    Args:
        capacity_bytes: the most memory that it takes.
    """

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._capacity = capacity_bytes
        self._run = 0
        self._by_prefix: dict[Ngram, Recent] = {}
        """N-grams by their first token, and by their first two."""
        self._count = self._bytes = self._additions = 0
        self._longest = 0
        """How many tokens the longest n-gram ever had."""
        self._oldest: list[Ngram] = []
        """From those that leave last to those that leave first, as of `_sorted_at`; taken from its end."""
        self._sorted_at = 0
        self._text: Sequence[int] = ()
        """What was read last."""
        self._read: dict[int, int] = {}
        """For each N, how many of its tokens have been read."""

    def __len__(self) -> int:
        return self._count

    def begin_run(self) -> None:
        """From now on, what is here has been learnt earlier."""
        self._run += 1

    def add(self, ngram: Sequence[int], source: str) -> bool:
        """Remember an n-gram (two tokens or more), or make a known one the latest. True if it is new."""
        return self.add_each([tuple(ngram)], source) == 1

    def read(self, text: Sequence[int], end: int, ngram: int, source: str) -> None:
        """Remember the n-grams of the first `end` tokens of a text, in order.

        Those that were read before, because the text read last begins like this one, are not added again: as long as
        the text fits in, they are here. So what is tried first of what follows a token is what was said last, in the
        text or in the window, and not what the prompt says because it was repeated.
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
        """Remember every n-gram of a text, in order; how many were new."""
        return self.add_each(_ngrams(tokens, ngram), source)

    def add_each(self, ngrams: Iterable[Ngram], source: str) -> int:
        """Remember n-grams, in order; how many were new."""
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
            elif source == ACCEPTED and known.run != self._run:  # an earlier run's, until this one has said it too
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
        """Up to `limit` tails of at most `length` tokens that have followed the end of a text, `last`.

        The longest matches come first, and of equal ones the latest added. A tail that is a prefix of an earlier
        one would verify nothing new and is left out.
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
        """Everything it holds, the latest added last."""
        everything = [one for prefix, recent in self._by_prefix.items() if len(prefix) == 1 for one in recent.items()]
        everything.sort(key=_last_added)
        return (ngram for ngram, _ in everything)

    def clear(self) -> None:
        """Forget everything."""
        self._by_prefix.clear()
        self._oldest.clear()
        self._count = self._bytes = 0
        self._text, self._read = (), {}

    def _lengthened(self, token: int, tail: Tail, length: int, entry: _Entry) -> tuple[Tail, _Entry]:
        """Replace a tail that a long match left short by that of the latest n-gram that begins with `token`, the text's
        last, and this tail; as it is if there is none.
        """
        longer = next(self._continuations((token, *tail)), None)
        return (tail, entry) if longer is None else (longer[0][1 : 1 + length], longer[1])

    def _continuations(self, tokens: Ngram) -> Iterator[tuple[Ngram, _Entry]]:
        """The n-grams that begin with these tokens and go on after them, the latest added first."""
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
        """Sort once and take thousands from that list: most pools never forget any.

        N-grams that were added since, for the first time or again, are younger than all of the list, and skipped. Those
        of the text, which no turn adds again, leave only where they leave too little room for others.
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
    """Every n-gram of a text, in order."""
    return zip(*(tokens[offset:] for offset in range(ngram)), strict=False)


def _last_added(one: tuple[Ngram, _Entry]) -> int:
    return one[1].added


def _size(ngram: Ngram) -> int:
    return BYTES_PER_NGRAM + BYTES_PER_TOKEN * (len(ngram) - 1)
