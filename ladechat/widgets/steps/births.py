"""Where the n-grams of an answer were born: the pass and the diagonal of the Jacobi window that first formed each."""

from typing import NamedTuple

from ladechat import protocol

MOST_NGRAMS = 100_000
"""Limit on the n-grams of an answer that are remembered, suffixes included."""


class Birth(NamedTuple):
    """The first time that an n-gram stood on a diagonal of the window.

    Attributes:
        step: the index of the step whose pass completed it.
        column: the diagonal, by its column in the oldest row.
        ahead: the position of its second token after the last token of that pass. The first is the pool's key.
    """

    step: int
    column: int
    ahead: int


class Births:
    """The diagonals of an answer's passes, to find the first that holds an n-gram. The pool gets all their suffixes."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._by_pair: dict[tuple[int, ...], list[tuple[Birth, tuple[int, ...]]]] = {}
        """For each two tokens, the n-grams that begin with them, in the order of birth, each with its diagonal."""
        self._count = 0

    def add(self, step: protocol.Step) -> None:
        """Remember the diagonals that the pass of this step completed."""
        if step.window is None or not step.window.rows:
            return
        if self._count > MOST_NGRAMS:
            self.clear()
        for column, ids in enumerate(diagonals(step.window)):
            self._count += len(ids) - 1
            for start in range(len(ids) - 1):
                birth = Birth(step.index, column, column + start + 1)
                self._by_pair.setdefault(ids[start : start + 2], []).append((birth, ids))

    def of(self, ngram: tuple[int, ...], before: int) -> Birth | None:
        """Return the birth of an n-gram of two tokens or more in a pass before step `before`; None without one."""
        for birth, ids in self._by_pair.get(ngram[:2], ()):
            start = birth.ahead - birth.column - 1
            if birth.step < before and ids[start : start + len(ngram)] == ngram:
                return birth
        return None


def diagonals(window: protocol.WindowView) -> list[tuple[int, ...]]:
    """Return the n-grams that a pass formed: each diagonal from the oldest row down to the fresh one."""
    return list(zip(*window.row_ids, window.fresh_ids, strict=False))


def diagonal_pieces(window: protocol.WindowView) -> list[tuple[str, ...]]:
    """Return the same as texts."""
    return list(zip(*window.rows, window.fresh, strict=False))
