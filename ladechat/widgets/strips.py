"""Lines of the screen, made of texts whose cells are counted as terminals count them, and widgets of one line."""

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from ladechat.widgets.cells import cell_len, cell_size


def strip_of(segments: Iterable[Segment], width: int, base: Style) -> Strip:
    """Return printable texts as a line exactly `width` cells wide, cut, or padded in the style `base`."""
    fitted: list[Segment] = []
    room = width
    for text, style, _ in segments:
        fitting = text if cell_len(text) <= room else _head(text, room)
        if fitting:
            fitted.append(Segment(fitting, style))
        room -= cell_len(fitting)
        if fitting != text:
            break
    if room > 0:
        fitted.append(Segment(" " * room, base))
    # The width is passed, not measured: Rich would count fewer cells, see `cell_size`.
    return Strip(fitted, width)


def _head(text: str, cells: int) -> str:
    """Return as much of the beginning as fits; a wide character is never split."""
    used = 0
    for place, character in enumerate(text):
        used += cell_size(character)
        if used > cells:
            return text[:place]
    return text


def restyle(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """Return the segments, with characters `start` to `end` in the given style."""
    restyled: list[Segment] = []
    place = 0
    for text, own, _ in segments:
        for character in text:
            inside = start <= place < end
            restyled.append(Segment(character, (own or Style()) + style if inside else own))
            place += 1
    return list(Segment.simplify(restyled))


class OneLine(Widget):
    """A widget that draws one line of text. A subclass implements `segments`."""

    DEFAULT_CSS = """
    OneLine { height: 1; width: 1fr; }
    """

    def segments(self, width: int) -> Iterable[Segment]:
        """Return what to draw in `width` cells, from the left."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width, base = self.content_size.width, self.rich_style
        return Strip.blank(width, base) if y else strip_of(self.segments(width), width, base)


class Track(OneLine):
    """A line with a bar along which the mouse can be dragged. A subclass implements `columns` and `point_at`."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._dragging = False

    @property
    def columns(self) -> range:
        raise NotImplementedError

    def point_at(self, x: int) -> None:
        """Handle that the mouse points at column `x`, which may be outside the bar."""
        raise NotImplementedError

    def let_go(self) -> None:
        """End dragging, if the mouse drags."""
        if self._dragging:
            self._dragging = False
            self.release_mouse()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        offset = event.get_content_offset_capture(self)
        if event.button == 1 and offset.x in self.columns and not offset.y:
            self._dragging = True
            self.capture_mouse()
            self.point_at(offset.x)
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragging:
            event.stop()
            if event.button:
                self.point_at(event.get_content_offset_capture(self).x)
            else:  # the button was released outside the terminal
                self.let_go()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragging:
            event.stop()
            self.let_go()

    def on_mouse_release(self) -> None:
        """Stop dragging after the mouse was captured by another widget, or released by this one."""
        self.let_go()
