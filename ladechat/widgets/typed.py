"""Inputs for typed or pasted text. What is visible is what is sent, searched and saved."""

from textual.widgets import Input, TextArea
from textual.widgets.text_area import Edit, EditResult

from ladechat.widgets.cells import CONTROL_SYMBOLS

_KEPT = "\n\r\t"
_HALVES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""Lone surrogates, which no text may hold."""
_TYPED = {code: symbol for code, symbol in CONTROL_SYMBOLS.items() if chr(code) not in _KEPT} | _HALVES


def typed(text: str) -> str:
    """Return `text` with control characters replaced, one for one, by visible symbols."""
    return text.translate(_TYPED)


class TypedLine(Input):
    """A line of input that replaces control characters by symbols, in its value too."""

    def validate_value(self, value: str) -> str:
        """Return the visible form of a value: everything typed or pasted passes through this method."""
        return typed(value)


class TypedText(TextArea):
    """Lines of input that replace control characters by symbols, in their text too."""

    def load_text(self, text: str) -> None:
        """Replace the text."""
        super().load_text(typed(text))

    def edit(self, edit: Edit) -> EditResult:
        """Insert or replace text: everything typed or pasted passes through this method."""
        edit.text = typed(edit.text)
        return super().edit(edit)
