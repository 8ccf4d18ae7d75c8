"""A number that is changed on a track: ``W ━━●────── 7``, or with its name ``W window ━━●─── 7``."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from ladechat.widgets.cells import cell_len
from ladechat.widgets.later import call_later
from ladechat.widgets.strips import Track

SETTLE_SECONDS = 0.15
"""A value that has not changed for this long is what the user wants."""
TYPING_SECONDS = 1.0
"""A pause this long after a digit ends the number that is being typed."""


class Slider(Track, can_focus=True):
    """A number of units from `minimum` to `maximum`, by arrow keys, wheel, click, drag, or typed after Tab.

    `value` changes at once. `Changed` follows when it has settled, and only if it differs from the last value that was
    sent or received. A value set from outside is accepted without a `Changed`. While the user moves the knob, such a
    value is ignored: it answers an older request, and the newer one is on its way.

    Args:
        label: the text before the track.
        value, minimum, maximum: whole numbers of units.
        unit: the size of a unit in the number that is shown and typed: 1, or a fraction such as 0.05.
        tooltip: one sentence, shown while the mouse is over the slider.

    Attributes:
        setting: the name of the setting that it changes.
        caption: dim text after the label; "" for none.
    """

    DEFAULT_CSS = """
    Slider > .slider--label { text-style: bold; }
    Slider > .slider--caption { color: $text-muted; }
    Slider > .slider--filled, Slider > .slider--knob { color: $text-primary; }
    Slider > .slider--empty { color: $foreground 35%; }
    Slider:focus > .slider--label, Slider:focus > .slider--value { text-style: bold reverse; }
    Slider:focus > .slider--knob, Slider:focus > .slider--filled { color: $text-accent; }
    Slider > .slider--typed { color: $text-accent; text-style: bold underline; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"slider--{part}" for part in ("label", "caption", "filled", "knob", "empty", "value", "typed")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,down", "move(-1)", "Less", show=False, id="slider.less"),
        Binding("right,up", "move(1)", "More", show=False, id="slider.more"),
        Binding("pagedown", "leap(-1)", "Much less", show=False, id="slider.much_less"),
        Binding("pageup", "leap(1)", "Much more", show=False, id="slider.much_more"),
        Binding("home", "move_to_end(-1)", "Least", show=False, id="slider.least"),
        Binding("end", "move_to_end(1)", "Most", show=False, id="slider.most"),
    ]

    setting = ""
    value: reactive[int] = reactive(0)
    _between: reactive[float | None] = reactive(None)
    _typed: reactive[str] = reactive("")

    @dataclass
    class Changed(Message):
        """The user has moved the slider, and it has settled at `value`."""

        slider: "Slider"
        value: int

    def __init__(
        self,
        label: str,
        value: int,
        minimum: int,
        maximum: int,
        *,
        unit: float = 1,
        id: str | None = None,
        tooltip: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.label, self.minimum, self.maximum = label, minimum, maximum
        self.unit = unit
        self.caption = ""
        self.tooltip = tooltip
        self._agreed: int | None = value
        self._by_hand = False
        self._takes_digits = True
        self._settling: asyncio.TimerHandle | None = None
        self._typing: asyncio.TimerHandle | None = None
        self.value = value

    # --- the value ----------------------------------------------------------------------------------------------------

    @property
    def number(self) -> float:
        """The value as the setting's number; an int if the unit is 1."""
        if self._between is not None:
            return self._between
        return self.value if self.unit == 1 else round(self.value * self.unit, self._decimals)

    def show(self, number: float) -> None:
        """Accept a number from outside. One between two units is shown as it is, until the user moves the knob."""
        if self._dragging or self._settling:
            return
        self._between = None
        self.value = round(number / self.unit)
        if abs(self.number - number) > 1e-9:
            self._between, self._agreed = number, None

    @property
    def _decimals(self) -> int:
        return len(f"{self.unit:g}".partition(".")[2])

    def _written(self, value: int) -> str:
        return f"{value * self.unit:.{self._decimals}f}"

    @property
    def _digits(self) -> int:
        """The cells of the longest number."""
        between = "" if self._between is None else f"{self._between:g}"
        return max(len(self._written(self.maximum)), len(between))

    def validate_value(self, value: int) -> int:
        """Return the value to show: Textual asks on each assignment. While the user moves the slider, what the engine
        reports does not move it; `_agreed` is the value that both have last had.
        """
        value = min(max(value, self.minimum), self.maximum)
        if self._by_hand:
            return value
        self._agreed = value
        return self.value if self._dragging or self._settling else value

    def _set(self, value: int, settle: float = SETTLE_SECONDS) -> None:
        """Accept a value from the user, and post `Changed` when it has not changed for `settle` seconds."""
        self._by_hand = True
        self._between = None
        try:
            self.value = value
        finally:
            self._by_hand = False
        if self._settling:
            self._settling.cancel()
        self._settling = call_later(self, settle, self._settle)

    def _settle(self) -> None:
        if self._settling:
            self._settling.cancel()
            self._settling = None
        if self.value != self._agreed:
            self._agreed = self.value
            self.post_message(self.Changed(self, self.value))

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_move(self, amount: int) -> None:
        self._set(self.value + amount)

    def action_leap(self, direction: int) -> None:
        self._set(self.value + direction * max(2, (self.maximum - self.minimum) // 8))

    def action_move_to_end(self, direction: int) -> None:
        self._set(self.maximum if direction > 0 else self.minimum)

    def on_key(self, event: events.Key) -> None:
        """Collect a typed number. Enter or a pause ends it, Escape drops it; otherwise those keys are not handled.

        After a click or a letter, digits are part of a question: they are not handled either.
        """
        digits = "0123456789" if self.unit == 1 else "0123456789."
        if self._takes_digits and event.character and event.character in digits:
            self._typed = (self._typed + event.character)[-len(self._written(self.maximum)) :]
            self._wait_for_digits()
        elif self._typed and event.key == "enter":
            self._take_typed()
        elif self._typed and event.key == "backspace":
            self._typed = self._typed[:-1]
            self._wait_for_digits()
        elif self._typed and event.key == "escape":
            self._typed = ""
        else:
            self._take_typed()
            # The screen moves the focus on a letter, but a digit right behind it may be here before that.
            self._takes_digits = self._takes_digits and not event.is_printable
            return
        event.prevent_default().stop()

    def on_blur(self) -> None:
        self._take_typed()
        self._takes_digits = True

    def _wait_for_digits(self) -> None:
        if self._typing:
            self._typing.cancel()
        self._typing = call_later(self, TYPING_SECONDS, self._take_typed)

    def _take_typed(self) -> None:
        if self._typing:
            self._typing.cancel()
            self._typing = None
        if self._typed:
            typed, self._typed = self._typed, ""
            with contextlib.suppress(ValueError):  # a lone point is no number
                self._set(round(float(typed) / self.unit))
                self._settle()

    # --- mouse --------------------------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._takes_digits = False

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._set(self.value + 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._set(self.value - 1)

    def point_at(self, x: int) -> None:
        """Move the knob to column `x`. If it is there already, the value stays: values share cells."""
        last = len(self.columns) - 1
        x = min(max(x - self.columns.start, 0), last)
        if x != self._knob:
            self._set(self.minimum + round(x / max(last, 1) * (self.maximum - self.minimum)))

    def let_go(self) -> None:
        dragged = self._dragging
        super().let_go()
        if dragged:
            self._settle()

    # --- drawing ------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> range:
        start = cell_len(self._named) + 1
        return range(start, max(start + 1, self.content_size.width - 1 - self._digits))

    @property
    def _named(self) -> str:
        return f"{self.label} {self.caption}" if self.caption else self.label

    @property
    def _knob(self) -> int:
        """The cell of the knob on the track."""
        return round((self.value - self.minimum) / max(self.maximum - self.minimum, 1) * (len(self.columns) - 1))

    def segments(self, width: int) -> list[Segment]:
        knob, base = self._knob, self.rich_style
        number = self._typed or (self._written(self.value) if self._between is None else f"{self._between:g}")
        return [
            Segment(self.label, self._look("label")),
            Segment(self._named[len(self.label) :], self._look("caption")),
            Segment(" ", base),
            Segment("━" * knob, self._look("filled")),
            Segment("●", self._look("knob")),
            Segment("─" * (len(self.columns) - 1 - knob), self._look("empty")),
            Segment(" " * (1 + self._digits - len(number)), base),
            Segment(number, self._look("typed" if self._typed else "value")),
        ]

    def _look(self, part: str) -> Style:
        return self.get_component_rich_style(f"slider--{part}")
