"""The models that are known without a network: the bundled one, those in the hub's cache, and those used before."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ladechat.files import matching, seen
from ladechat.session.conversations.store import ConversationStore

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
    """Return each model once: the bundled one first, then those used before, latest first, then the rest of the cache.

    Args:
        store: the saved conversations; None: none are known.
        used: the models of this session that have answered, or can.
        failed: the models that could not be loaded.
    """
    asked = [conversation.model for conversation in store.conversations()] if store is not None else []
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
