"""The position of a replay: state, speed, turn, step and time, with a progress line."""

from typing import ClassVar

from rich.segment import Segment
from textual.reactive import reactive
from textual.strip import Strip

from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.cells import cell_len, shorten
from ladechat.widgets.strips import strip_of

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

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if y:
            return Strip.blank(width, self.rich_style)
        state = shorten(self.state, width)
        facts = list(self.facts)
        while facts and cell_len(state) + sum(cell_len(fact) + 3 for fact in facts) > width:
            facts.pop(0)
        text = "".join(f" · {fact}" for fact in facts)
        start = cell_len(state) + cell_len(text) + 2
        segments = [
            Segment(state, self.get_component_rich_style("transport--state")),
            Segment(text, self.get_component_rich_style("transport--facts")),
            Segment("  ", self.rich_style),
            *self.draw_bar(range(start, width if width - start >= MIN_LINE_CELLS else start)),
        ]
        return strip_of(segments, width, self.rich_style)
