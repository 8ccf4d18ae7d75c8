"""Where a replay is: state, speed, turn, step and time, with a line that shows how far it has come."""

from typing import ClassVar

from rich.segment import Segment
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ladechat.widgets.cells import cell_len, shorten
from ladechat.widgets.strips import strip_of

DONE, HERE, TO_COME = "━", "●", "─"
MIN_LINE_CELLS = 10
"""Below this the line says nothing, and the words have its room."""


class Transport(Widget, can_focus=True):
    """``▶ 1× · turn 2 of 5 · step 34 of 120 · 0:31 of 4:12  ━━━━━━●────────``"""

    DEFAULT_CSS = """
    Transport { height: 1; width: 1fr; }
    Transport > .transport--state { text-style: bold; }
    Transport > .transport--facts { color: $text-muted; }
    Transport > .transport--done { color: $primary; }
    Transport > .transport--to-come { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "transport--state",
        "transport--facts",
        "transport--done",
        "transport--to-come",
    }

    state = reactive("")
    facts: reactive[tuple[str, ...]] = reactive(())
    """Wordings of where it is, most important last: the first goes first where there is no room."""
    fraction = reactive(0.0)

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if y:
            return Strip.blank(width, self.rich_style)
        state = shorten(self.state, width)
        facts = list(self.facts)
        while facts and cell_len(state) + sum(cell_len(fact) + 3 for fact in facts) > width:
            facts.pop(0)
        text = "".join(f" · {fact}" for fact in facts)
        room = width - cell_len(state) - cell_len(text) - 2
        segments = [
            Segment(state, self.get_component_rich_style("transport--state")),
            Segment(text, self.get_component_rich_style("transport--facts")),
        ]
        if room >= MIN_LINE_CELLS:
            done = round(self.fraction * (room - 1))
            segments += [
                Segment("  ", self.rich_style),
                Segment(DONE * done + HERE, self.get_component_rich_style("transport--done")),
                Segment(TO_COME * (room - 1 - done), self.get_component_rich_style("transport--to-come")),
            ]
        return strip_of(segments, width, self.rich_style)
