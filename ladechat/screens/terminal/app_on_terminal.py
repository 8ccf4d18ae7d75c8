"""An app on any terminal: one of any size, that is suspended, resumed, closed, or gone."""

from pathlib import Path
from typing import Any

from platformdirs import user_state_path
from rich.console import RenderableType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from ladechat.files import PRIVATE, replace_file
from ladechat.screens.terminal.app_messages import AppWithMessages
from ladechat.screens.terminal.driver import ScreenDriver
from ladechat.terminal import leave_on_signals
from ladechat.widgets.cells import measure_alike
from ladechat.widgets.too_small import LEAST_COLUMNS, LEAST_ROWS


class AppOnTerminal(AppWithMessages, inherit_bindings=False):
    """An app that measures its terminal, fits its screens to it, and exits when the system requests it."""

    HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (LEAST_COLUMNS, "-tiny"), (70, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-too-low"), (LEAST_ROWS, "-short"), (36, "-tall"), (46, "-high")]  # noqa: RUF012 - as above

    def __init__(self) -> None:
        measure_alike()
        super().__init__()
        self.failed = False
        """Whether the app has ended because of an error in itself."""

    def get_driver_class(self) -> type[Driver]:
        """Return the driver for this terminal, or for this browser tab."""
        found = super().get_driver_class()
        return ScreenDriver if found is LinuxDriver else found

    @property
    def focused(self) -> Widget | None:
        """The widget with the keyboard focus; on a screen that is being opened, the one that will have it."""
        return super().focused or getattr(self.screen, "first_focus", None)

    def copy_to_clipboard(self, text: str, said: str = "Sent to the clipboard") -> None:
        """Copy a text to the clipboard, if the terminal supports it (OSC 52), and to a file; then notify the user."""
        super().copy_to_clipboard(text)
        path = keep(text)
        self.notify(f"{said}; {f'also in {path}' if path else 'no file could be written'}.")

    def panic(self, *renderables: RenderableType) -> None:
        """Exit with an error report and an exit code for it."""
        self.failed = True
        super().panic(*renderables)

    def on_resize(self, event: Resize) -> None:
        """Fit all screens to the new size; Textual leaves covered screens as they were."""
        for screen in self.screen_stack:
            self.fit(screen, event.size)

    def fit(self, screen: Screen[Any], size: Size) -> None:
        """Set the classes of a screen for a size, without waiting until Textual notices the size."""
        for cells, breakpoints in zip(size, (self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS), strict=True):
            fitting = [name for least, name in breakpoints if cells >= least][-1]
            for _, name in breakpoints:
                screen.set_class(name == fitting, name)

    def on_mount(self) -> None:
        """Redraw everything after the app was suspended, and exit when the system requests it, even if it is busy."""
        self.app_resume_signal.subscribe(self, lambda _: self.refresh(layout=True))
        leave_on_signals(lambda code: self.exit(code, return_code=code), self._give_terminal_back)

    def _give_terminal_back(self) -> None:
        """Restore the terminal when the app itself cannot."""
        if self._driver is not None:
            self._driver.stop_application_mode()
            self._driver.close()


def keep(text: str, folder: Path | None = None) -> Path | None:
    """Write a copied text to a private file too: many terminals cannot write the clipboard, and none reports it. Return
    the file, in the platform's folder for a program's state or in another folder; None if it cannot be written.
    """
    path = (folder or user_state_path("ladechat")) / "copied.txt"
    try:
        replace_file(path, text.encode(errors="replace"), PRIVATE)
    except OSError:
        return None
    return path
