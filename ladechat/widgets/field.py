"""One line of input beside a list: what is typed, and the keys of the screen after it, in their order."""

from collections.abc import Awaitable, Callable

from textual import events

from ladechat.widgets.keys_in_turn import send_on
from ladechat.widgets.typed import TypedLine


class Field(TypedLine):
    """An input whose keys act in the order in which they were typed, however fast they come.

    When a key has come up to the app, letters that were typed after it are in the field, and word of those before it
    may still be on its way to the list: Enter would open what stood there before. So the field runs the screen's keys,
    and its own, in their turn.

    Args:
        settle: brings the screen up to date with what is typed; called before a key of the screen acts. Esc does not
            wait for it.
        placeholder: shown while nothing is typed.
        id: of the widget.
    """

    def __init__(self, settle: Callable[[], Awaitable[None]], *, placeholder: str = "", id: str | None = None) -> None:
        super().__init__(placeholder=placeholder, compact=True, id=id)
        self._settle = settle

    async def on_key(self, event: events.Key) -> None:
        """Run what the key is bound to now. One that was on its way when the focus left goes where the focus is."""
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
        """Enter is the screen's."""
        return action != "submit"
