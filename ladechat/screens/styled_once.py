"""Screens that are first shown with the styles they were composed with."""

from typing import Generic

from textual import on
from textual.app import ComposeResult
from textual.events import Mount, ScreenResume
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from ladechat.own_keys import keymap_of, rebound
from ladechat.widgets.bars.key_footer import KeyFooter
from ladechat.widgets.bars.message_line import MessageLine
from ladechat.widgets.too_small import TooSmall


def bottom(*lines: Widget, messages: bool = True) -> ComposeResult:
    """Yield the last lines of a screen: messages of the program, unless they have another place, lines of its own, and
    its keys; and what covers all of it in a terminal without room.
    """
    if messages:
        yield MessageLine()
    yield from lines
    yield KeyFooter()
    yield TooSmall()


class StyledOnce(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen that does not style its widgets a second time when it is first shown.

    Each widget gets its styles when it is composed, a moment before. Textual computes the same styles again when the
    screen is shown, which takes a quarter of the time until the first frame.
    """

    first_focus: Widget | None = None
    """The widget that will have the focus when the screen is shown. Keys that are typed before wait in it."""

    @on(Mount)
    def _take_own_keys(self) -> None:
        """Put the user's keys in place of ours."""
        if keymap := keymap_of(self.app):
            self._bindings = rebound(self._bindings, keymap)
            self.refresh_bindings()

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Refresh the styles only if the screen was shown before, and other screens since."""
        event.refresh_styles = self.stack_updates > 0

    @property
    def alone(self) -> bool:
        """Whether no screen is below this one: a command of the shell has opened it."""
        return self.app.screen_stack[0] is self

    def action_leave(self) -> None:
        """Return to the screen below, without a result, or exit if there is none."""
        if self.alone:
            self.app.exit(0)
        else:
            self.dismiss(None)

    def action_interrupt(self) -> None:
        """Copy the selection; without one, leave."""
        if selected := self.get_selected_text():
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
        else:
            self.action_leave()
