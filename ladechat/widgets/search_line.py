"""A line that asks what to search for, and is there only while it does."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from ladechat.widgets.typed import TypedLine


class SearchLine(TypedLine):
    """Enter submits it and it stays; Esc closes it."""

    DEFAULT_CSS = """
    SearchLine { display: none; }
    SearchLine.-open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Next place"),
        Binding("escape", "close", "Close"),
    ]

    class Closed(Message):
        """It is gone again."""

    def __init__(self, *, id: str) -> None:
        super().__init__(placeholder="Search: Enter: next place, Esc closes", compact=True, id=id)

    def open(self) -> None:
        """Be there, with what was searched for before selected."""
        self.add_class("-open")
        self.focus()
        self.action_select_all()

    def action_close(self) -> None:
        """Be gone."""
        self.remove_class("-open")
        self.post_message(self.Closed())
