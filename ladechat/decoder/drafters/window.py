"""The lookahead branch as a drafter: every pass carries the Jacobi window, and its n-grams enter the pool."""

import random
from collections.abc import Mapping, Sequence

from ladechat.decoder.drafters.drafter import NOTHING, ROOT, Drafter, Node, PassResult, Proposal, Room
from ladechat.decoder.drafters.ngram_pool import NGramPool
from ladechat.decoder.jacobi import JacobiWindow
from ladechat.decoder.step import WindowSnapshot

SOURCE = "window"
CHANCE = 0.2


class WindowDrafter(Drafter):
    """Proposes the window as a tree: row 0 is a chain from the last token, and each column is a chain below its row 0.

    So the cell of row r, column c has position r + c, and sees what it does in Fu et al. 2024 (arXiv 2402.02057, figure
    3): row 0 up to its column, and its own column above it. Its paths are guesses like any others.

    Args:
        pool: gets the n-grams of the columns.
        window: W, columns; 0 proposes nothing.
        ngram: N; the window has N − 1 rows.
    """

    def __init__(self, pool: NGramPool, window: int = 5, ngram: int = 3) -> None:
        self._pool = pool
        self.width, self.ngram = window, ngram
        self._text: Sequence[int] = ()
        self._window: JacobiWindow | None = None
        self._proposed = False
        """Whether `propose` offered the window for this pass: a window of one cell is slot 0, without nodes."""
        self._random = random.Random(0)

    def configure(self, parameters: Mapping[str, bool | int]) -> None:
        """Set W and N from `window` and `ngram`; the next `propose` resizes the window."""
        self.width, self.ngram = parameters.get("window", self.width), parameters.get("ngram", self.ngram)

    def begin(self, text: Sequence[int], prompt_length: int) -> None:
        self._text, self._window = text, None
        self._random.seed(0)

    def propose(self, room: Room) -> Proposal:
        if not self.width or self.width + self.ngram - 2 > room.positions:
            self._window = None
            return NOTHING
        if self._window is None:
            self._window = JacobiWindow(self._text[-1], self.width, self.ngram, self._filler)
        elif (self._window.width, self._window.ngram) != (self.width, self.ngram):
            self._window.resize(self.width, self.ngram, self._filler)
        self._proposed = True
        return Proposal(as_nodes(self._window.rows), whole=True)  # fresh tokens need the whole last row

    def observe(self, result: PassResult, slots: Sequence[int]) -> None:
        self.snapshot = None
        proposed, self._proposed = self._proposed, False
        if self._window is None:
            return
        if not proposed or any(slot < 0 for slot in slots):
            self._window = None  # its rows no longer begin at the last token
            return
        # Slot 0 is the first cell; the last W cells are the last row.
        last_row = [0, *slots][-self._window.width :]
        fresh = tuple(result.argmax[slot] for slot in last_row)
        self.snapshot = WindowSnapshot(tuple(map(tuple, self._window.rows)), fresh)
        self._pool.add_each(self._window.ngrams(fresh), SOURCE)
        self._window.advance(fresh, result.tokens[-1])

    def _filler(self) -> int:
        """Return a random token of the text, for a cell that no pass has written yet."""
        return self._random.choice(self._text)


def as_nodes(rows: Sequence[Sequence[int]]) -> list[Node]:
    """Return the window's cells as nodes, row by row, without row 0, column 0, which is the last token itself."""
    width, nodes = len(rows[0]), list[Node]()
    for index, token in enumerate(token for row in rows for token in row):
        if index:
            before = index - 1 if index < width else index - width  # the cell at the left in row 0, else the one above
            # Cell 0 is no node, so a node's index is that of its cell less one.
            nodes.append(Node(before - 1 if before else ROOT, token, SOURCE, SOURCE, CHANCE))
    return nodes
