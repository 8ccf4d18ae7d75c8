"""Inputs for typed or pasted text: what is visible is what is sent, searched and saved, and keys act in their order.

Textual looks up a key's action once the key has bubbled up to the app, but chooses the receiving widget when the key is
read. In a burst, as of a macro or over a slow line, all keys are queued at one widget before the first has opened a
screen. So that widget runs the bindings in order, and forwards the keys that belong to another screen.
"""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.widgets.text_area import Edit, EditResult

from ladechat.widgets.cells import CONTROL_SYMBOLS

ALT = "alt+"
"""With it terminals send a character too, which is typed if the key has no action."""
_KEPT = "\n\r\t"
_HALVES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
"""Lone surrogates, which no text may hold."""
_TYPED = {code: symbol for code, symbol in CONTROL_SYMBOLS.items() if chr(code) not in _KEPT} | _HALVES


def typed(text: str) -> str:
    """Return `text` with control characters replaced, one for one, by visible symbols."""
    return text.translate(_TYPED)


class TypedLine(Input):
    """A line of input that replaces control characters by symbols, in its value too."""

    def validate_value(self, value: str) -> str:
        """Return the visible form of a value: everything typed or pasted passes through this method."""
        return typed(value)


class TypedText(TextArea):
    """Lines of input that replace control characters by symbols, in their text too."""

    def load_text(self, text: str) -> None:
        super().load_text(typed(text))

    def edit(self, edit: Edit) -> EditResult:
        """Insert or replace text: everything typed or pasted passes through this method."""
        edit.text = typed(edit.text)
        return super().edit(edit)


def forwarded(widget: Widget, event: events.Key | events.Paste) -> bool:
    """Forward a key or a paste if an earlier key has opened another screen; return whether it was forwarded."""
    if widget.screen is widget.app.screen:
        return False
    forward(event, widget.app.focused or widget.app.screen)
    return True


def forward(event: events.Key | events.Paste, target: Widget) -> None:
    """Post a key or a paste to another widget instead."""
    event.prevent_default().stop()
    if isinstance(event, events.Paste):
        target.post_message(events.Paste(event.text))
    else:
        copy = events.Key(event.key, event.character)
        copy.time = event.time
        target.post_message(copy)


class Field(TypedLine):
    """An input whose keys act in the order in which they were typed, at any speed.

    When a key has bubbled up to the app, letters typed after it are already in the field, while messages about letters
    before it may not have reached the list: Enter would open an outdated item. So the field runs the screen's key
    bindings, and its own, in order.

    Args:
        settle: updates the screen to the typed text; called before a key of the screen acts, except Esc.
        placeholder: shown while nothing is typed.
        id: of the widget.
    """

    def __init__(self, settle: Callable[[], Awaitable[None]], *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, compact=True, id=id)
        self._settle = settle

    async def on_key(self, event: events.Key) -> None:
        """Run the key's current binding. A key that arrives after the focus has moved is sent to the focused widget."""
        focused = self.app.focused
        if focused is not None and focused is not self:
            forward(event, focused)
            return
        if event.is_printable and not event.key.startswith(ALT):
            return
        of_screen = self.screen._bindings.key_to_bindings.get(event.key, [])
        if of_screen and event.key != "escape":
            await self._settle()
        own = self._bindings.key_to_bindings.get(event.key, [])
        for namespace, binding in [(self.screen, one) for one in of_screen] + [(self, one) for one in own]:
            if await self.app.run_action(binding.action, namespace):
                break
        if of_screen or own:
            event.prevent_default().stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for Enter, which is the screen's."""
        return action != "submit"


class SearchLine(TypedLine):
    """An input for a search text: Enter submits it and leaves it open; Esc closes it, and focuses `back_to`."""

    DEFAULT_CSS = """
    SearchLine { display: none; }
    SearchLine.-open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "Next place", id="search.next"),
        Binding("escape", "close", "Close", id="search.close"),
    ]

    def __init__(self, back_to: Widget) -> None:
        super().__init__(placeholder="Search: Enter: next place, Esc closes", compact=True, id="find")
        self._back_to = back_to

    def open(self) -> None:
        """Show the line, with the previous search text selected."""
        self.add_class("-open")
        self.focus()
        self.action_select_all()

    def action_close(self) -> None:
        self.remove_class("-open")
        self.screen.set_focus(self._back_to)
