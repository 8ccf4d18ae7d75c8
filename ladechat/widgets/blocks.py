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

    Attributes:
        waiting: how many of the first ones wait to be laid out, and have no lines until then.
        gap: those in the middle that wait too, where an earlier place than the end was laid out first.
    """

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._starts: list[int] = []
        self.waiting = 0
        self.gap = range(0)

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def __getitem__(self, number: int) -> Block:
        return self._blocks[number]

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
        number, place = self.place(y)
        return self._blocks[number].lines[place]

    def place(self, y: int) -> tuple[int, int]:
        """The number of the message that has the line `y`, and which of its lines that is; there must be a message."""
        number = bisect_right(self._starts, y) - 1
        return number, y - self._starts[number]

    def start(self, number: int) -> int:
        """The number of the first line of a message."""
        return self._starts[number]

    def last_where(self, true: Callable[[Line], bool]) -> int | None:
        """The number of the last line of which this is true."""
        lines = self.lines
        return next((y for y in range(len(lines) - 1, -1, -1) if true(lines[y])), None)

    def add(self, block: Block) -> None:
        """Add a message."""
        self._starts.append(self.height)
        self._blocks.append(block)
        if block.waits:
            self.waiting = len(self._blocks)

    def keep(self, count: int) -> None:
        """Forget all but the first so many messages."""
        del self._blocks[count:], self._starts[count:]
        self.waiting = min(self.waiting, count)
        self.gap = range(self.gap.start, min(self.gap.stop, count))

    def wait(self, first: int | None = None) -> None:
        """Have all messages laid out anew: by `lay_out`, and those from the message `first` on by `lay_out_gap`."""
        for block in self._blocks:
            block.wait()
        self.waiting = len(self._blocks) if first is None else first
        self.gap = range(self.waiting, len(self._blocks))

    def lay_out(self, width: int, formatted: bool, enough: Callable[[int], bool]) -> int:
        """Lay out messages that wait, the last one first; return the number of lines that they have.

        Args:
            width: of their text, in cells.
            formatted: whether answers are formatted.
            enough: told that number after each message; where it returns True, the others wait for another call.
        """
        lines = 0
        while self.waiting and not enough(lines):
            self.waiting -= 1
            block = self._blocks[self.waiting]
            block.lay_out(width, formatted)
            lines += len(block.lines)
        self.count_anew()
        return lines

    def lay_out_gap(self, width: int, formatted: bool, enough: Callable[[int], bool]) -> None:
        """Lay out messages in the gap, the first one first; with the arguments of `lay_out`."""
        lines = 0
        while self.gap and not enough(lines):
            block = self._blocks[self.gap.start]
            self.gap = self.gap[1:]
            block.lay_out(width, formatted)
            lines += len(block.lines)
        self.count_anew()

    def count_anew(self) -> None:
        """Take over that messages above the last may have other lines than before."""
        *self._starts, _ = accumulate((len(block.lines) for block in self._blocks), initial=0)

    def selected(self, selection: Selection) -> str:
        """What is selected, as it was written."""
        return "".join(
            block.selected(selection, start) for start, block in zip(self._starts, self._blocks, strict=True)
        )
