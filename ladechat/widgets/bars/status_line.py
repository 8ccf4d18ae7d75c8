"""One line: the model, its device, and the current activity."""

from typing import ClassVar

from rich.segment import Segment
from textual.reactive import reactive

from ladechat.own_keys import with_own_keys
from ladechat.widgets.cells import cell_len, printable, shorten
from ladechat.widgets.strips import OneLine

SEPARATOR = " · "
ANSWERING = "answering …"
PAUSED = "paused · Space goes on · → one pass · ← back"
"""Replaces `ANSWERING` in a pause."""
LEFT = ("device", "link", "dtype", "decoder", "facts", "memory")
"""What stands at the left, after the model."""
MIN_MODEL_CELLS = 12
"""A model's name is shortened, rather than left out, while it has at least this much room."""


class StatusLine(OneLine):
    """``model · device · link · dtype · decoder · facts · memory``; right: ``activity · rate · waiting · looking for``.

    What does not fit is left out, least important first: memory, facts, the owner in the model's name, dtype, device,
    link, decoder, and at last the model. The activity stays.

    Attributes:
        link: the latency of the link to an engine that a command of the user's has started; else empty.
        rate: the requested passes per second; empty for full speed.
        unit: what a step is.
        paused: whether steps are paused.
        mode: what the user does instead of following the answer, such as looking back at a pass; else empty.
        waiting: what starts later, such as questions that wait for the end of this answer; else empty.
        looking_for: another model that will answer once its files are found; else empty.
    """

    DEFAULT_CSS = """
    StatusLine > .status-line--model { text-style: bold; }
    StatusLine > .status-line--rest { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"status-line--model", "status-line--rest", "status-line--activity"}

    model = reactive("")
    device = reactive("")
    link = reactive("")
    dtype = reactive("")
    decoder = reactive("")
    facts = reactive("")
    memory = reactive("")
    activity = reactive("")
    rate = reactive("")
    unit = reactive("pass")
    paused = reactive(False)
    mode = reactive("")
    waiting = reactive("")
    looking_for = reactive("")

    def segments(self, width: int) -> list[Segment]:
        activity = shorten(self._right(), width)
        model, rest = self._left(width - cell_len(activity) - 2)
        gap = width - cell_len(model) - cell_len(rest) - cell_len(activity)
        return [
            Segment(model, self.get_component_rich_style("status-line--model")),
            Segment(rest, self.get_component_rich_style("status-line--rest")),
            Segment(" " * gap, self.rich_style),
            Segment(activity, self.get_component_rich_style("status-line--activity")),
        ]

    def _right(self) -> str:
        """Return the activity, its pace, and what follows it."""
        doing = SEPARATOR.join(filter(None, (self.mode or self.activity, "paused" * self.paused)))
        if not self.mode:
            at_rest = self.paused and self.activity == ANSWERING
            doing = with_own_keys(PAUSED.replace("one pass", f"one {self.unit}") if at_rest else doing, self.app)
        search = f"looking for {printable(self.looking_for)} …" if self.looking_for else ""
        return SEPARATOR.join(filter(None, (doing, self.rate, self.waiting, search)))

    def _left(self, room: int) -> tuple[str, str]:
        """Return the model, and the rest of the left side, as much as fits into `room` cells."""
        model = printable(self.model)
        rest = {name: printable(getattr(self, name)) for name in LEFT}
        for least in ("memory", "facts", "owner", "dtype", "device", "link", "decoder"):
            tail = _tail(model, list(filter(None, rest.values())))
            if cell_len(model) + cell_len(tail) <= room:
                return model, tail
            if least == "owner":
                model = model.rsplit("/", 1)[-1]
            else:
                rest[least] = ""
        return (shorten(model, room) if room >= min(MIN_MODEL_CELLS, cell_len(model)) else ""), ""


def _tail(model: str, parts: list[str]) -> str:
    """Return `parts` joined by separators, with one in front if a model is named."""
    return SEPARATOR * bool(model and parts) + SEPARATOR.join(parts)
