"""Explanations of the panels, with the numbers that they show now."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ladechat.keys import EXPLAIN_KEYS
from ladechat.own_keys import with_own_keys
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.widgets.cells import printable

NOTHING = "No panel is on the screen. F2 shows them; below 70 columns they take the room of the conversation."
TOO_FAST = "F6: four passes a second. Space: pause. →: one pass."
"""Shown on screens that have these keys."""
MASK_ALONE = " F10: the mask alone."


class ExplainScreen(StyledOnce[None], ModalScreen[None]):
    """Explains the panels beside the conversation: names and texts."""

    BINDINGS: ClassVar[list[BindingType]] = list(EXPLAIN_KEYS)

    def __init__(self, explanations: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._explanations = explanations or [("panels", NOTHING)]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for name, text in self._explanations:
                yield Static(Content(printable(name)), classes="heading")
                yield Static(Content(printable(with_own_keys(text, self.app))))
        yield from bottom()
