"""The list of models: those on this machine, and any other by its name or path."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, OptionList

from ladechat.keys import MODELS_KEYS
from ladechat.screens.lists.pick import PickScreen
from ladechat.session.known_models import KnownModel
from ladechat.widgets.cells import printable

PLACEHOLDER = "A word to search, a hub id or a path"
TYPED = "from the hub, or a path"


class ModelsScreen(PickScreen[str | None]):
    """A searchable list; the typed text can be chosen as it is.

    Args:
        list_models: finds the models; it may be slow.
        current: the model that answers now.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(MODELS_KEYS)

    def __init__(self, list_models: Callable[[], Sequence[KnownModel]], current: str) -> None:
        super().__init__("Model")
        self._list_models = list_models
        self._current = current
        self._all: Sequence[KnownModel] = ()
        self._shown: list[KnownModel] = []
        self._shown_for: str | None = None  # the text whose matches are listed
        self._loaded = asyncio.Event()
        self._field.placeholder = PLACEHOLDER

    async def on_mount(self) -> None:
        self._say("Another model takes a while to load. The conversation stays.")
        self._all = await asyncio.to_thread(self._list_models)
        self._loaded.set()
        self._show()

    async def _settle(self) -> None:
        await self._loaded.wait()
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        """List the models that match all typed words, and after them the typed text itself."""
        if self._field.value == self._shown_for or not self._loaded.is_set():
            return
        self._shown_for = self._field.value
        typed = self._shown_for.strip()
        words = typed.casefold().split()
        self._shown = [one for one in self._all if all(word in one.name.casefold() for word in words)]
        if typed and typed not in (one.name for one in self._shown):
            self._shown.append(KnownModel(typed, TYPED))
        self._list.clear_options()
        self._list.add_options([self._row(one) for one in self._shown])
        self._list.highlighted = 0 if self._shown else None

    def _row(self, one: KnownModel) -> Content:
        about = f"{one.about} · now" if one.name == self._current else one.about
        return Content.assemble((printable(one.name), "bold"), f"  {printable(about)}")

    @on(OptionList.OptionSelected)
    def action_take(self) -> None:
        """Use the highlighted model."""
        place = self._list.highlighted
        if place is not None and place < len(self._shown):
            self.dismiss(self._shown[place].name)
