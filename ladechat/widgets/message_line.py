"""What the program says for a while, in lines that are there only while it does: they cover nothing."""

from typing import ClassVar, NamedTuple

from textual.content import Content
from textual.notifications import SeverityLevel
from textual.widgets import Static


class Message(NamedTuple):
    """One thing that is said."""

    text: str
    severity: SeverityLevel


class MessageLine(Static):
    """As many lines as the messages of the app need. A click takes them away."""

    DEFAULT_CSS = """
    MessageLine { display: none; height: auto; max-height: 50%; padding: 0 1; background: $surface; }
    MessageLine { border-left: outer $success; }
    MessageLine.-warning { border-left: outer $warning; }
    MessageLine.-error { border-left: outer $error; }
    """
    ALLOW_SELECT: ClassVar[bool] = False

    def on_mount(self) -> None:
        self.watch(self.app, "said", self._show)

    def _show(self, said: tuple[Message, ...]) -> None:
        self.display = bool(said)
        self.set_class(any(message.severity == "warning" for message in said), "-warning")
        self.set_class(any(message.severity == "error" for message in said), "-error")
        self.update(Content("\n".join(message.text for message in said)))

    def on_click(self) -> None:
        self.app.clear_notifications()
