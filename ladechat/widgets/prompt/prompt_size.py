"""The size of the text in the prompt, shown when not all of it is visible."""

from textual.widget import Widget

from ladechat.widgets.formatting import counted

LINES_SEEN = 6
"""Maximum visible lines of the prompt."""
CHARACTERS_SEEN = 400
"""Visible characters of one line, in a narrow terminal."""


class PromptSize(Widget):
    """One line above the prompt, as "48 lines, 3,120 characters"; empty if the whole text is visible."""

    DEFAULT_CSS = """
    PromptSize { height: 1; color: $text-muted; background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__(id="size", markup=False)
        self.display = False
        self._text = ""

    def show(self, text: str) -> None:
        """Show the size of a text."""
        self._text = size_of(text)
        self.display = bool(self._text)
        self.refresh()

    def render(self) -> str:
        return self._text


def size_of(text: str) -> str:
    """Return the lines and characters of a text, in words; "" if it is short. A final line break begins no line."""
    rows = text.count("\n") + 1
    lines = rows - text.endswith("\n")
    if rows <= LINES_SEEN and len(text) <= CHARACTERS_SEEN:
        return ""
    return f"{counted(lines, 'line')}, {counted(len(text), 'character')}"
