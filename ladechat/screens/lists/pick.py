"""A list to choose from, with one field: typed text goes into the field, and the arrow keys move in the list."""

import asyncio
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Label

from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.widgets.cells import printable
from ladechat.widgets.inputs import Field
from ladechat.widgets.lists import MarkedList

LOW_ROWS = 24
"""On a screen of fewer rows, the list takes the height that the lines above it leave."""

Result = TypeVar("Result")


class PickScreen(StyledOnce[Result], ModalScreen[Result]):
    """The base of such screens; `heading` is the first line."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, heading: str) -> None:
        super().__init__()
        self._heading = heading
        self.first_focus = self._field = Field(self._settle)
        self._said = Label("", markup=False, classes="said")
        self._list = MarkedList(compact=True, markup=False)
        self._listed = asyncio.Event()

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(self._heading, classes="heading")
            yield self._field
            yield self._said
            yield self._list
        yield from bottom()

    async def on_mount(self) -> None:
        self._list.can_focus = False
        self.set_focus(self._field)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.height < LOW_ROWS, "-low")

    async def _settle(self) -> None:
        """Bring the list up to date with the field before a key acts on it."""
        await self._listed.wait()

    def _say(self, text: str) -> None:
        self._said.update(printable(text))

    def action_move(self, how: str) -> None:
        getattr(self._list, f"action_{how}")()
