"""What the chat and the replay have in common: the conversation, the panels, how they look, and the keys for that."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding
from textual.containers import Horizontal
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer, Label

from ladechat.clipboard import keep
from ladechat.palette import Look, Palette
from ladechat.protocol import Settings
from ladechat.widgets.flow import safe
from ladechat.widgets.presenter import Presenter
from ladechat.widgets.side import SidePanels
from ladechat.widgets.status_line import StatusLine
from ladechat.widgets.too_small import LEAST_COLUMNS, LEAST_ROWS, TooSmall
from ladechat.widgets.transcript import Transcript

FRAMES_PER_SECOND = 30
WELCOME = (
    "Ask the bundled model about what you see, for instance: What is the n-gram pool? How do I choose W, N and G? "
    "Write a Python function that reverses a string."
)


def welcome(model: str) -> str:
    """What is said before anything else: how to begin with the bundled model."""
    return WELCOME if model == "demo" else ""


class Viewer(App[int], inherit_bindings=False):
    """A conversation at the left, and at the right how its answers come about.

    Args:
        settings: what the decoder starts with.
        welcome: said in the transcript before anything else.
    """

    CSS_PATH = "app.tcss"
    TITLE = "ladechat"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (70, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012
    KEYS: ClassVar[tuple[Binding, ...]] = ()
    """The keys that the command palette lists too."""

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, settings: Settings, welcome: str = "") -> None:
        super().__init__()
        self._settings = settings
        self._welcome = welcome

    def controls(self) -> Widget:
        """What stands below the conversation."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield Transcript(id="transcript")
            yield SidePanels(self._settings, id="side")
        yield self.controls()
        with Horizontal(id="status-bar"):
            yield StatusLine(id="status")
            yield Label("● rec", id="recording")
        yield Footer(compact=True)
        yield TooSmall()

    def on_mount(self) -> None:
        self.theme_changed_signal.subscribe(self, lambda _: self._match_theme())
        self._match_theme()
        parts = self.query_one(Transcript), self.query_one(SidePanels), self.query_one(StatusLine)
        self.presenter = Presenter(*parts, welcome=self._welcome)
        self.presenter.begin(self._settings)

    def on_resize(self, event: events.Resize) -> None:
        """Where nothing has room, say so instead."""
        width, height = event.size
        small = self.query_one(TooSmall)
        small.display = width < LEAST_COLUMNS or height < LEAST_ROWS
        small.refresh()

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_page_up(self) -> None:
        """Earlier in the conversation."""
        self.query_one(Transcript).action_page_up()

    def action_page_down(self) -> None:
        """Later in the conversation."""
        self.query_one(Transcript).action_page_down()

    def action_follow(self) -> None:
        """To the end of the conversation, and on with it as it grows."""
        self.query_one(Transcript).anchor()

    def action_toggle_panels(self) -> None:
        """Show or hide the panels."""
        side = self.query_one(SidePanels)
        side.display = not side.display

    def action_switch_look(self) -> None:
        """A hue for each step, or the two colours of the method's demo figure."""
        look = Look.DEMO if self.palette.look is Look.HUES else Look.HUES
        self.palette = replace(self.palette, look=look)

    def action_copy_answer(self) -> None:
        """Copy the last answer as it was written."""
        answer = self.query_one(Transcript).last_answer()
        if answer:
            self.copy(answer)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message for a while. What it names, a file or an error, is shown as it is and steers nothing."""
        super().notify(safe(message), title=title, severity=severity, timeout=timeout, markup=markup)

    def copy(self, text: str) -> None:
        """Put a text on the clipboard, as far as the terminal takes it (OSC 52), and into a file."""
        self.copy_to_clipboard(text)
        path = keep(text)
        self.notify(f"Sent to the clipboard; {f'also in {path}' if path else 'no file could be written'}.")

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(0)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key's action, by name, in the command palette."""
        yield from super().get_system_commands(screen)
        for binding in self.KEYS:
            if binding.id not in ("quit", "interrupt"):
                yield SystemCommand(binding.description, binding.tooltip, getattr(self, f"action_{binding.action}"))

    # --- looks --------------------------------------------------------------------------------------------------------

    def watch_palette(self, palette: Palette) -> None:
        self.query_one(SidePanels).palette = palette
        self.query_one(Transcript).palette = palette

    def _match_theme(self) -> None:
        self.palette = replace(Palette.detect(dark=self.current_theme.dark), look=self.palette.look)
