"""Changes to the keys shown in the footer; the keys themselves work as before."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from textual.binding import ActiveBinding


def leave_out(bindings: dict[str, ActiveBinding], ids: Collection[str]) -> None:
    """Hide the bindings of these ids."""
    _change(bindings, ids, show=False)


def relabel(bindings: dict[str, ActiveBinding], id: str, description: str) -> None:
    """Change the label of the binding of this id."""
    _change(bindings, (id,), description=description)


def relabel_pause(bindings: dict[str, ActiveBinding], playing: bool, at_end: bool) -> None:
    """Label Space by what it does in a replay or a race: it pauses, continues, or starts again at the end."""
    if not playing:
        relabel(bindings, "pause", "Again" if at_end else "Go on")


def _change(bindings: dict[str, ActiveBinding], ids: Collection[str], **changes: Any) -> None:
    for key, active in bindings.items():
        if active.binding.id in ids:
            bindings[key] = active._replace(binding=replace(active.binding, **changes))
