"""Finds a text in a conversation: a line of input, and how many places there are."""

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Label

from ladechat.widgets.formatting import counted
from ladechat.widgets.inputs import TypedLine
from ladechat.widgets.transcript.message_lines import MessageLines


class FindLine(TypedLine):
    """An input for the text. `go` goes to a place, so many on from the one that is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "go(1)", "Next", id="find.next"),
        Binding("up", "go(-1)", "Previous", id="find.previous"),
        Binding("escape", "close", "Close", id="find.close"),
    ]

    def __init__(self, go: Callable[[int], None], close: Callable[[], None]) -> None:
        super().__init__(placeholder="Find in this conversation", compact=True)
        self.action_go, self.action_close = go, close


class FindBar(Horizontal):
    """Marks the places of a text in a conversation, one after the other.

    It begins with the first place from the top of the view on. Closed, it gives the focus to the widget `back_to`.
    """

    DEFAULT_CSS = """
    FindBar { display: none; height: 1; }
    FindBar.-open { display: block; }
    FindBar Input { width: 1fr; }
    FindBar Label { width: auto; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, lines: MessageLines, back_to: Widget) -> None:
        super().__init__(id="finding")
        self._lines, self._back_to = lines, back_to
        self._input = FindLine(self._go, self._close)
        self._count = Label("")
        self._from = 0  # the message at the top of the view when the bar was opened
        self._at: tuple[int, int] | None = None

    def compose(self) -> ComposeResult:
        yield self._input
        yield self._count

    def open(self) -> None:
        """Show the bar, with the text of the last time selected."""
        self._from = self._lines.message_in_view
        self.add_class("-open")
        self.screen.set_focus(self._input)
        self._input.action_select_all()

    def _close(self) -> None:
        """Hide the bar. The place stays marked."""
        self.remove_class("-open")
        self.screen.set_focus(self._back_to)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._at = None
        self._go(0)

    def _go(self, by: int) -> None:
        """Show the place that is so many on, after the last one the first; or if none is shown, the first in view."""
        text = self._input.value
        places = self._lines.places(text) if text.strip() else []
        if not places:
            self._at = None
            self._count.update("found nowhere" if text.strip() else "")
            return
        if self._at in places:
            number = (places.index(self._at) + by) % len(places)
        else:
            number = next((number for number, (message, _) in enumerate(places) if message >= self._from), 0)
        self._at = places[number]
        self._lines.show_place(*self._at, text)
        self._count.update(f"{number + 1:,} of {counted(len(places), 'place')}")
