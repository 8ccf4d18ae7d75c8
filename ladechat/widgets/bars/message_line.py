"""Temporary messages of the program, in lines that exist only while there are messages: they cover nothing."""

from typing import ClassVar, NamedTuple

from textual.app import RenderResult
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.notifications import SeverityLevel
from textual.widget import Widget

from ladechat.own_keys import with_own_keys
from ladechat.widgets.cells import shorten

HELP = "app.help"
"""The action that shows the messages in full."""


class ShownMessage(NamedTuple):
    """A message to the user."""

    text: str
    severity: SeverityLevel


class MessageLine(Widget):
    """The messages of the app, in up to half of the screen. A click dismisses them."""

    DEFAULT_CSS = """
    MessageLine { display: none; height: auto; max-height: 50%; padding: 0 1; background: $surface; }
    MessageLine { border-left: outer $success; }
    MessageLine.-warning { border-left: outer $warning; }
    MessageLine.-error { border-left: outer $error; }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._text = Content("")

    def on_mount(self) -> None:
        self.watch(self.app, "said", self._show)

    def _show(self, said: tuple[ShownMessage, ...]) -> None:
        self.display = bool(said)
        self.set_class(any(message.severity == "warning" for message in said), "-warning")
        self.set_class(any(message.severity == "error" for message in said), "-error")
        self._text = Content("\n".join(message.text for message in said))
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._text.wrap(width))

    def render(self) -> RenderResult:
        """Return all lines; if some have no room, the last line says where to read them."""
        width, height = self.content_size
        lines = self._text.wrap(width) if width else []
        if len(lines) <= height:
            return self._text
        helps = any(isinstance(key, Binding) and key.action == HELP for key in self.screen.BINDINGS)
        more = shorten(with_own_keys("… F1 shows all of it" if helps else "…", self.app), width)
        return Content("\n").join([*lines[: height - 1], Content(more)])

    def on_click(self) -> None:
        self.app.clear_notifications()
