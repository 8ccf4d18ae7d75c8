"""The lookahead branch: Jacobi iteration over a window of future tokens, whose trajectory yields n-grams.

Fu et al. 2024 (arXiv 2402.02057), section 3.1. With W = 5 and N = 4 the window is three rows, each the answer of one
pass, the oldest on top; row r (a, b, c), column c has position r + c after the last token ``I``::

    position    0   1   2   3   4   5   6   7
    row 0       I  a1  a2  a3  a4                    two passes old
    row 1          b1  b2  b3  b4  b5                one pass old
    row 2              c2  c3  c4  c5  c6            written by the last pass
    fresh                  d3  d4  d5  d6  d7        what this pass writes below row 2

The first window is filled with random tokens of the text; its row r begins with row 0 from column r on, which has the
same positions. Each column, read downwards, is a chain of tokens at successive positions. With the fresh token below
it, it is an n-gram: (I, b1, c2, d3), (a1, b2, c3, d4), … So are its suffixes: (b1, c2, d3), (c2, d3). Then row 0 is
dropped, and the window moves on by one position.
"""

from collections.abc import Callable, Iterator, Sequence

Filler = Callable[[], int]
"""Returns a token for a window cell that no pass has written yet."""


class JacobiWindow:
    """The last N − 1 iterates of W future tokens. `rows[0][0]` is always the last accepted token."""

    def __init__(self, last_token: int, width: int, ngram: int, filler: Filler) -> None:
        self.rows: list[list[int]] = [[last_token]]
        self.resize(width, ngram, filler)

    @property
    def width(self) -> int:
        return len(self.rows[0])

    @property
    def ngram(self) -> int:
        return len(self.rows) + 1

    def resize(self, width: int, ngram: int, filler: Filler) -> None:
        """Change W and N. Cells present before and after keep their tokens: a prefix of a chain is a chain."""
        del self.rows[ngram - 1 :]
        for row in self.rows:
            del row[width:]
        self.rows[0] += [filler() for _ in range(width - len(self.rows[0]))]
        while len(self.rows) < ngram - 1:
            # Column i of a new row has the position of column i + 1 of the row above: begin with the same tokens.
            self.rows.append(self.rows[-1][1:])
        for row in self.rows[1:]:
            row += [filler() for _ in range(width - len(row))]

    def ngrams(self, fresh: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield the n-grams completed by this pass: suffixes (2 to N tokens) of each column c with `fresh[c]` below it.

        The paper takes whole columns only; with their suffixes a text takes fewer passes (measured:
        docs/experiments.md). A pool prefers what was added last, so long n-grams and near columns come last.
        """
        columns = list(zip(*self.rows, fresh, strict=True))
        for length in range(2, self.ngram + 1):
            for column in reversed(columns):
                yield column[-length:]

    def advance(self, fresh: Sequence[int], last_token: int) -> None:
        """Drop row 0, append `fresh` (W tokens) as the last row, and put the last accepted token into the first cell.

        The window moves on by one position, even where a step emitted k > 1 tokens, as in the authors' implementation:
        a cell written for position p is then used at p + k - 1. Moving on by k and filling the gap at the right with
        random tokens took more steps on a real model (docs/experiments.md).
        """
        self.rows = [*self.rows[1:], list(fresh)]
        self.rows[0][0] = last_token
