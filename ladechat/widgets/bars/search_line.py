"""A line that asks for a search text, visible only while it is open."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from ladechat.widgets.typed import TypedLine


class SearchLine(TypedLine):
    """An input for a search text: Enter submits it and leaves it open; Esc closes it."""

    DEFAULT_CSS = """
    SearchLine { display: none; }
    SearchLine.-open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Next place"),
        Binding("escape", "close", "Close"),
    ]

    class Closed(Message):
        """The search line was closed."""

    def __init__(self, *, id: str) -> None:
        super().__init__(placeholder="Search: Enter: next place, Esc closes", compact=True, id=id)

    def open(self) -> None:
        """Show the line, with the previous search text selected."""
        self.add_class("-open")
        self.focus()
        self.action_select_all()

    def action_close(self) -> None:
        """Hide the line."""
        self.remove_class("-open")
        self.post_message(self.Closed())
