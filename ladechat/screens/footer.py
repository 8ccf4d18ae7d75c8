"""Changes to the keys shown in the footer; the keys themselves work as before."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from textual.binding import ActiveBinding, Binding

from ladechat.widgets.units import in_unit


def leave_out(bindings: dict[str, ActiveBinding], ids: Collection[str]) -> None:
    """Hide the bindings of these ids."""
    change(bindings, ids, show=False)


def relabel(bindings: dict[str, ActiveBinding], id: str, description: str) -> None:
    """Change the label of the binding of this id."""
    change(bindings, (id,), description=description)


def relabel_pause(bindings: dict[str, ActiveBinding], playing: bool, at_end: bool) -> None:
    """Label Space by what it does in a replay or a race: it pauses, continues, or starts again at the end."""
    if not playing:
        relabel(bindings, "pause", "Again" if at_end else "Go on")


def say_unit(bindings: dict[str, ActiveBinding], unit: str) -> None:
    """Call a pass by what a step is, in the labels and tooltips of all bindings."""
    for key, active in bindings.items():
        bindings[key] = active._replace(
            binding=key_in_unit(active.binding, unit), tooltip=in_unit(active.tooltip, unit)
        )


def key_in_unit(key: Binding, unit: str) -> Binding:
    """Return a binding that calls a pass by what a step is."""
    group = key.group and replace(key.group, description=in_unit(key.group.description, unit))
    described, tooltip = in_unit(key.description, unit), in_unit(key.tooltip, unit)
    return replace(key, description=described, tooltip=tooltip, group=group)


def change(bindings: dict[str, ActiveBinding], ids: Collection[str | None], **changes: Any) -> None:
    """Change the bindings of these ids."""
    for key, active in bindings.items():
        if active.binding.id in ids:
            bindings[key] = active._replace(binding=replace(active.binding, **changes))
