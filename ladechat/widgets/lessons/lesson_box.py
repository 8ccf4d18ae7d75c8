"""The card of a lesson: its place in the lesson, a text, the choices of a prediction, and the key that continues."""

import textwrap

from rich.style import Style
from textual.geometry import Size

from ladechat.widgets.cells import shorten
from ladechat.widgets.panels.panel import Panel, Row


class LessonBox(Panel, can_focus=True):
    """A heading, a text, the choices of a prediction, and a last line with instructions.

    Attributes:
        heading: the scene, at the left, and the card, at the right.
        text: the text, wrapped when drawn.
        choices: one line each, numbered.
        chosen: the index of the reader's prediction.
        outcome: the index of the choice that came true.
        hint: what the reader can do.
        urgent: whether the hint is highlighted.
    """

    DEFAULT_CSS = """
    LessonBox:focus > .panel--title { color: $text-accent; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.heading = ("", "")
        self.text = ""
        self.choices: tuple[str, ...] = ()
        self.chosen: int | None = None
        self.outcome: int | None = None
        self.hint = ""
        self.urgent = False
        self._top = 0  # first visible line of text and choices, if not all fit

    def show(
        self,
        heading: tuple[str, str],
        text: str,
        hint: str,
        choices: tuple[str, ...] = (),
        chosen: int | None = None,
        outcome: int | None = None,
        *,
        urgent: bool = False,
    ) -> None:
        """Replace the card."""
        card = (heading, text, hint, choices, chosen, outcome, urgent)
        if card != (self.heading, self.text, self.hint, self.choices, self.chosen, self.outcome, self.urgent):
            self._top = 0 if text != self.text else self._top
            self.heading, self.text, self.hint, self.urgent = heading, text, hint, urgent
            self.choices, self.chosen, self.outcome = choices, chosen, outcome
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + len(self._body(width)) + len(self._hint(width))

    def rows(self, width: int, height: int) -> list[Row]:
        hint = self._hint(width)
        room = max(height - 1 - len(hint), 1)
        whole = self._body(width)
        self._top = min(self._top, max(len(whole) - room, 0))
        body = whole[self._top : self._top + room]
        empty: list[Row] = [[] for _ in range(room - len(body))]
        title, place = self.heading
        more = f"{'↑' if self._top else ' '}{'↓' if self._top + room < len(whole) else ' '}".strip()
        head = self.header(width, (title,), (more or place,))
        return [head, *body, *empty, *hint]

    def scroll_text(self, lines: int) -> None:
        """Scroll the text down by a number of lines, if not all of it fits."""
        self._top = max(self._top + lines, 0)
        self.refresh()

    def _hint(self, width: int) -> list[Row]:
        return [[(line, Style(bold=self.urgent))] for line in textwrap.wrap(self.hint, max(width, 1)) or [""]]

    def _body(self, width: int) -> list[Row]:
        lines: list[Row] = [[(line, Style())] for line in textwrap.wrap(self.text, max(width, 1))]
        return [*lines, *(self._choice(number, text, width) for number, text in enumerate(self.choices))]

    def _choice(self, number: int, text: str, width: int) -> Row:
        """Return the row of a choice, with marks for the reader's prediction and for the outcome."""
        true, made = number == self.outcome, number == self.chosen
        mark = "✓" if true else "✗" if made and self.outcome is not None else " "
        suffix = " · your prediction" if made else ""
        style = Style(bold=True) if made or true else Style()
        return [(shorten(f"{mark} {number + 1}  {text}{suffix}", width), style)]
