"""The editor of the system prompt."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label

from ladechat.keys import SYSTEM_KEYS
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.widgets.inputs import TypedText


class SystemPromptScreen(StyledOnce[str | None], ModalScreen[str | None]):
    """An editor of the present text. Enter starts a new line, Ctrl+S takes the text, Esc cancels."""

    BINDINGS: ClassVar[list[BindingType]] = list(SYSTEM_KEYS)

    def __init__(self, text: str) -> None:
        super().__init__()
        self._area = TypedText(text, compact=True, placeholder="Nothing is said to the model before your questions.")
        self._area.move_cursor(self._area.document.end)
        self.first_focus = self._area

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label("How the model should behave, from the next question on", classes="heading")
            yield self._area
        yield from bottom()

    def on_mount(self) -> None:
        self._area.focus()

    def action_take(self) -> None:
        self.dismiss(self._area.text.strip())
