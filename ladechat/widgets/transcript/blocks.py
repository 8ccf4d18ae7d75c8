"""The messages of a conversation, one below the other, and the mapping from lines to messages."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

from textual.selection import Selection

from ladechat.widgets.flow import Line
from ladechat.widgets.transcript.block import Block


class Blocks:
    """The messages in order. Each holds its own lines; this class holds where each begins.

    Only the last message may grow without a call of `count_anew`.

    Attributes:
        waiting: number of messages at the start that are not laid out yet, and so have no lines.
        gap: messages in the middle that are not laid out either, after a jump to an earlier message.
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
        """The number of the last message's first line; 0 without messages."""
        return self._starts[-1] if self._starts else 0

    @property
    def height(self) -> int:
        """The number of lines."""
        return self.last_start + len(self.last.lines) if self._blocks else 0

    @property
    def lines(self) -> list[Line]:
        """All lines."""
        return [line for block in self._blocks for line in block.lines]

    def line(self, y: int) -> Line:
        """Return line number `y`."""
        number, place = self.place(y)
        return self._blocks[number].lines[place]

    def place(self, y: int) -> tuple[int, int]:
        """Return the number of the message at line `y`, and the line's index in it; there must be a message."""
        number = bisect_right(self._starts, y) - 1
        return number, y - self._starts[number]

    def start(self, number: int) -> int:
        """Return the number of a message's first line."""
        return self._starts[number]

    def last_where(self, true: Callable[[Line], bool]) -> int | None:
        """Return the number of the last line for which `true` holds."""
        lines = self.lines
        return next((y for y in range(len(lines) - 1, -1, -1) if true(lines[y])), None)

    def add(self, block: Block) -> None:
        """Add a message."""
        self._starts.append(self.height)
        self._blocks.append(block)
        if block.waits:
            self.waiting = len(self._blocks)

    def keep(self, count: int) -> None:
        """Remove all but the first `count` messages."""
        del self._blocks[count:], self._starts[count:]
        self.waiting = min(self.waiting, count)
        self.gap = range(self.gap.start, min(self.gap.stop, count))

    def wait(self, first: int | None = None) -> None:
        """Mark all messages for layout: those before `first` by `lay_out`, the others by `lay_out_gap`."""
        for block in self._blocks:
            block.wait()
        self.waiting = len(self._blocks) if first is None else first
        self.gap = range(self.waiting, len(self._blocks))

    def lay_out(self, width: int, formatted: bool, enough: Callable[[int], bool]) -> int:
        """Lay out waiting messages, last first; return how many lines they have.

        Args:
            width: of their text, in cells.
            formatted: whether answers are formatted.
            enough: called with the number of lines so far before each message; True leaves the others for another call.
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
        """Lay out messages of the gap, first one first; the arguments are those of `lay_out`."""
        lines = 0
        while self.gap and not enough(lines):
            block = self._blocks[self.gap.start]
            self.gap = self.gap[1:]
            block.lay_out(width, formatted)
            lines += len(block.lines)
        self.count_anew()

    def count_anew(self) -> None:
        """Count the lines again, after messages above the last have changed."""
        *self._starts, _ = accumulate((len(block.lines) for block in self._blocks), initial=0)

    def selected(self, selection: Selection) -> str:
        """Return the raw text of a selection."""
        return "".join(
            block.selected(selection, start) for start, block in zip(self._starts, self._blocks, strict=True)
        )
