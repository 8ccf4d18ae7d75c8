"""Screens that are shown with the styles that they were composed with."""

from typing import Generic

from textual.events import ScreenResume
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget


class StyledOnce(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen that does not style its widgets a second time when it is first shown.

    Each widget gets its styles when it is composed, a moment before. To give them all the same styles once more, as
    Textual does, takes a quarter of the time until the first frame.
    """

    first_focus: Widget | None = None
    """What will have the keyboard when the screen is there. Keys that are typed before wait in it."""

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Ask for styles only where the screen has been shown before, and other things have happened since."""
        event.refresh_styles = self.stack_updates > 0
