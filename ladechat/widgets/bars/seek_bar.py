"""A progress line; clicking on it, or dragging along it, chooses a place to go to."""

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ladechat.widgets.strips import strip_of

DONE, HERE, TO_COME, UNKNOWN = "━", "●", "─", "╌"


class SeekBar(Widget):
    """``━━━━━━●────────``, as wide as the widget. A subclass may draw other things beside its bar.

    Attributes:
        fraction: progress, 0 to 1.
        known: the part of the bar that can be gone to, 0 to 1.
    """

    DEFAULT_CSS = """
    SeekBar { height: 1; width: 1fr; }
    SeekBar > .seek-bar--done { color: $text-primary; }
    SeekBar > .seek-bar--to-come { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"seek-bar--done", "seek-bar--to-come"}
    ALLOW_SELECT = False

    fraction = reactive(0.0)
    known = reactive(1.0)

    class Sought(Message):
        """The user has pointed at a place of the bar. If several are queued, only the last is handled.

        Args:
            bar: the bar.
            fraction: 0 to 1.
        """

        def __init__(self, bar: "SeekBar", fraction: float) -> None:
            super().__init__()
            self.bar = bar
            self.fraction = fraction

        @property
        def control(self) -> "SeekBar":
            return self.bar

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, SeekBar.Sought) and message.bar is self.bar

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns = range(0)
        """The columns of the bar when last drawn."""
        self._dragging = False
        self._pointed_at = -1

    # --- mouse --------------------------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        offset = event.get_content_offset_capture(self)
        if event.button == 1 and offset.x in self._columns and not offset.y:
            self._dragging, self._pointed_at = True, -1
            self.capture_mouse()
            self._seek(offset.x)
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            event.stop()
            if event.button:
                self._seek(event.get_content_offset_capture(self).x)
            else:  # the button was released outside the terminal
                self._let_go()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            event.stop()
            self._let_go()

    def on_mouse_release(self) -> None:
        """Stop dragging after the mouse was captured by another widget, or released by this one."""
        self._let_go()

    def _seek(self, x: int) -> None:
        if x != self._pointed_at:
            self._pointed_at = x
            share = (x - self._columns.start) / max(len(self._columns) - 1, 1)
            self.post_message(self.Sought(self, min(max(share, 0.0), 1.0)))

    def _let_go(self) -> None:
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    # --- drawing ------------------------------------------------------------------------------------------------------

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

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        if y:
            return Strip.blank(width, self.rich_style)
        return strip_of(self.draw_bar(range(width)), width, self.rich_style)
