"""Progress lines; clicking on one, or dragging along it, chooses a place to go to."""

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive

from ladechat.widgets.cells import cell_len, shorten
from ladechat.widgets.strips import Track

DONE, HERE, TO_COME, UNKNOWN = "━", "●", "─", "╌"


class SeekBar(Track):
    """``━━━━━━●────────``, as wide as the widget. A subclass may draw other things beside its bar.

    Attributes:
        fraction: progress, 0 to 1.
        known: the part of the bar that can be gone to, 0 to 1.
    """

    DEFAULT_CSS = """
    SeekBar > .seek-bar--done { color: $text-primary; }
    SeekBar > .seek-bar--to-come { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"seek-bar--done", "seek-bar--to-come"}
    ALLOW_SELECT = False

    fraction = reactive(0.0)
    known = reactive(1.0)

    @dataclass
    class Sought(Message):
        """The user has pointed at a fraction (0 to 1) of a bar. If several are queued, only the last is handled."""

        bar: "SeekBar"
        fraction: float

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, SeekBar.Sought) and message.bar is self.bar

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns = range(0)
        """The columns of the bar when last drawn."""
        self._pointed_at = -1

    @property
    def columns(self) -> range:
        return self._columns

    def point_at(self, x: int) -> None:
        """Post `Sought`, once for each column."""
        if x != self._pointed_at:
            self._pointed_at = x
            share = (x - self._columns.start) / max(len(self._columns) - 1, 1)
            self.post_message(self.Sought(self, min(max(share, 0.0), 1.0)))

    def let_go(self) -> None:
        super().let_go()
        self._pointed_at = -1

    def draw_bar(self, columns: range) -> list[Segment]:
        """Return the bar, drawn in these columns of the first line, which then respond to the mouse."""
        self._columns = columns
        if not columns:
            return []
        last = len(columns) - 1
        done = round(self.fraction * last)
        known = max(round(self.known * last), done)
        return [
            Segment(DONE * done + HERE, self.get_component_rich_style("seek-bar--done")),
            Segment(
                TO_COME * (known - done) + UNKNOWN * (last - known), self.get_component_rich_style("seek-bar--to-come")
            ),
        ]

    def segments(self, width: int) -> list[Segment]:
        return self.draw_bar(range(width))


MIN_LINE_CELLS = 10
"""Minimum cells of the progress line; with less room it is left out, and the words use the space."""


class Transport(SeekBar, can_focus=True):
    """``▶ 1× · question 2 of 5 · pass 34 of 120 · 0:31 of 4:12  ━━━━━━●────────``"""

    DEFAULT_CSS = """
    Transport > .transport--state { text-style: bold; }
    Transport > .transport--facts { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"transport--state", "transport--facts"}

    state = reactive("")
    facts: reactive[tuple[str, ...]] = reactive(())
    """Parts of the description, most important last: if there is no room, the first is left out first."""

    def segments(self, width: int) -> list[Segment]:
        state = shorten(self.state, width)
        facts = list(self.facts)
        while facts and cell_len(state) + sum(cell_len(fact) + 3 for fact in facts) > width:
            facts.pop(0)
        text = "".join(f" · {fact}" for fact in facts)
        start = cell_len(state) + cell_len(text) + 2
        return [
            Segment(state, self.get_component_rich_style("transport--state")),
            Segment(text, self.get_component_rich_style("transport--facts")),
            Segment("  ", self.rich_style),
            *self.draw_bar(range(start, width if width - start >= MIN_LINE_CELLS else start)),
        ]
