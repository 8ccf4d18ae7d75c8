"""A line of input beside a list. Typed text and the keys of the screen act in the order in which they were typed."""

from collections.abc import Awaitable, Callable

from textual import events

from ladechat.widgets.keys_in_turn import send_on
from ladechat.widgets.typed import TypedLine


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
            send_on(event, focused)
            return
        if event.is_printable:
            return
        of_screen = self.screen._bindings.key_to_bindings.get(event.key, [])
        if of_screen and event.key != "escape":
            await self._settle()
        own = self._bindings.key_to_bindings.get(event.key, [])
        for namespace, binding in [(self.screen, one) for one in of_screen] + [(self, one) for one in own]:
            if await self.app.run_action(binding.action, namespace):
                break
        if of_screen or own:
            event.prevent_default()
            event.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for Enter, which is the screen's."""
        return action != "submit"
