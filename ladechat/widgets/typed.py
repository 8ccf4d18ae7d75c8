"""Text that is typed or pasted, wherever there is a place for it. What is seen is what is sent, searched and saved."""

from textual.widgets import Input, TextArea
from textual.widgets.text_area import Edit, EditResult

from ladechat.widgets.cells import CONTROL_SYMBOLS

_KEPT = "\n\r\t"
_HALVES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""Halves of characters, which no text may hold."""
_TYPED = {code: symbol for code, symbol in CONTROL_SYMBOLS.items() if chr(code) not in _KEPT} | _HALVES


def typed(text: str) -> str:
    """Return `text` with visible symbols, one for one, for what would steer the terminal."""
    return text.translate(_TYPED)


class TypedLine(Input):
    """A line of input that shows what would steer a terminal as symbols, and has them as its value."""

    def validate_value(self, value: str) -> str:
        """Take the text that is seen: all that is typed or pasted comes through here."""
        return typed(value)


class TypedText(TextArea):
    """Lines of input that show what would steer a terminal as symbols, and have them as their text."""

    def load_text(self, text: str) -> None:
        """Put a text in the place of what is there."""
        super().load_text(typed(text))

    def edit(self, edit: Edit) -> EditResult:
        """Insert, or replace: all that is typed or pasted comes through here."""
        edit.text = typed(edit.text)
        return super().edit(edit)
