"""The list of models: those on this machine, and any other by its name or path."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from textual import on
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, OptionList

from ladechat.files import matching, seen
from ladechat.keys import MODELS_KEYS
from ladechat.screens.lists.pick import PickScreen
from ladechat.session.conversations.store import ConversationStore
from ladechat.widgets.cells import printable

PLACEHOLDER = "A word to search, a hub id, a path, a server's http://…"
TYPED = "from the hub, a path, or a server"
OF_A_MODEL = "models--"
"""The start of the name of a model's folder in the hub's cache; `--` stands for the slash in the model's name."""

GONE = "used before, not there any more"


class KnownModel(NamedTuple):
    """A model by the name that the user enters for it, and its source in a few words."""

    name: str
    about: str


def hub_cache() -> Path:
    """Return the cache folder of huggingface_hub. It is not called, since importing it takes a second."""
    if named := os.environ.get("HF_HUB_CACHE"):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("HF_HOME") or f"{cache}/huggingface").expanduser() / "hub"


def known_models(
    store: ConversationStore | None, used: Iterable[str] = (), failed: Iterable[str] = ()
) -> list[KnownModel]:
    """Return each model once: the bundled one first, those that could not be loaded, then those `used` in this session
    and in the saved conversations, latest first, then the rest of the cache.
    """
    asked = [conversation.model for conversation in store.listing().all] if store is not None else []
    before = [KnownModel(name, "used before" if _may_be_there(name) else GONE) for name in (*used, *asked) if name]
    found: dict[str, KnownModel] = {}
    not_loaded = (KnownModel(name, "could not be loaded") for name in failed)
    for one in (KnownModel("demo", "comes with ladechat"), *not_loaded, *before, *sorted(_cached(hub_cache()))):
        found.setdefault(one.name, one)
    return list(found.values())


def _may_be_there(name: str) -> bool:
    """Return whether it is not a path, or one that exists."""
    return not Path(name).is_absolute() or seen(Path(name))


def _cached(cache: Path) -> Iterator[KnownModel]:
    """Yield the cached models that have a configuration and weights, in folders that can be read."""
    for folder in matching(cache, f"{OF_A_MODEL}*"):
        name = folder.name.removeprefix(OF_A_MODEL).replace("--", "/")
        versions = (each for each in matching(folder, "snapshots/*") if seen(each / "config.json"))
        if any(seen(file) for version in versions for file in matching(version, "*.safetensors")):
            yield KnownModel(name, "on this machine")


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
        self._field.placeholder = PLACEHOLDER

    async def on_mount(self) -> None:
        self._say("Another model takes a while to load. The conversation stays.")
        self._all = await asyncio.to_thread(self._list_models)
        self._listed.set()
        self._show()

    async def _settle(self) -> None:
        await super()._settle()
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        """List the models that match all typed words, and after them the typed text itself."""
        if self._field.value == self._shown_for or not self._listed.is_set():
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
        place = self._list.highlighted
        if place is not None and place < len(self._shown):
            self.dismiss(self._shown[place].name)
