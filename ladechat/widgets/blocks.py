"""The messages of a conversation, one below the other, and which line of it is whose."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

from textual.selection import Selection

from ladechat.widgets.block import Block
from ladechat.widgets.flow import Line


class Blocks:
    """Messages in their order. How many lines it shows each knows alone; where they begin follows from that.

    Only the last one may grow without a `count_anew`.
    """

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    @property
    def last(self) -> Block:
        """The last message."""
        return self._blocks[-1]

    @property
    def last_start(self) -> int:
        """The number of its first line; 0 where there is none."""
        return self._starts[-1] if self._starts else 0

    @property
    def height(self) -> int:
        """How many lines there are."""
        return self.last_start + len(self.last.lines) if self._blocks else 0

    @property
    def lines(self) -> list[Line]:
        """All lines."""
        return [line for block in self._blocks for line in block.lines]

    def line(self, y: int) -> Line:
        """One of the lines."""
        number = bisect_right(self._starts, y) - 1
        return self._blocks[number].lines[y - self._starts[number]]

    def last_where(self, true: Callable[[Line], bool]) -> int | None:
        """The number of the last line of which this is true."""
        lines = self.lines
        return next((y for y in range(len(lines) - 1, -1, -1) if true(lines[y])), None)

    def add(self, block: Block) -> None:
        """Add a message."""
        self._starts.append(self.height)
        self._blocks.append(block)

    def keep(self, count: int) -> None:
        """Forget all but the first so many messages."""
        del self._blocks[count:], self._starts[count:]

    def count_anew(self) -> None:
        """Take over that messages above the last may have other lines than before."""
        *self._starts, _ = accumulate((len(block.lines) for block in self._blocks), initial=0)

    def selected(self, selection: Selection) -> str:
        """What is selected, as it was written."""
        return "".join(
            block.selected(selection, start) for start, block in zip(self._starts, self._blocks, strict=True)
        )
