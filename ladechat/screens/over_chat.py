"""Screens that are opened over the chat, or alone by a command of their own."""

from ladechat.screens.styled_once import StyledOnce


class OverChat(StyledOnce[None]):
    """A screen that is left for the chat below, or for the shell if there is none."""

    @property
    def alone(self) -> bool:
        """Whether no chat is below this screen."""
        return self.app.screen_stack[0] is self

    def action_leave(self) -> None:
        """Return to the chat, or exit."""
        if self.alone:
            self.app.exit(0)
        else:
            self.dismiss()
