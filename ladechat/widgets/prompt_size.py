"""How much stands in the prompt, where that is more than is seen of it."""

from textual.widget import Widget

from ladechat.widgets.formatting import counted

LINES_SEEN = 6
"""Of the prompt, at most."""
CHARACTERS_SEEN = 400
"""Of one line, in a narrow terminal."""


class PromptSize(Widget):
    """One line above the prompt, as "48 lines, 3,120 characters"; none where all of it is seen."""

    DEFAULT_CSS = """
    PromptSize { height: 1; color: $text-muted; background: $surface; }
    """

    def __init__(self) -> None:
        super().__init__(id="size", markup=False)
        self.display = False
        self._text = ""

    def show(self, text: str) -> None:
        """Say how much this is."""
        self._text = size_of(text)
        self.display = bool(self._text)
        self.refresh()

    def render(self) -> str:
        return self._text


def size_of(text: str) -> str:
    """The lines and characters of a text, in words; "" if it is short. A line break at its end begins no line."""
    rows = text.count("\n") + 1
    lines = rows - text.endswith("\n")
    if rows <= LINES_SEEN and len(text) <= CHARACTERS_SEEN:
        return ""
    return f"{counted(lines, 'line')}, {counted(len(text), 'character')}"
