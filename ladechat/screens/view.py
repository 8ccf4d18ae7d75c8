"""The widgets of the chat and its replay: conversation, panels, status line, and the presenter that draws them."""

from collections.abc import Iterable, Sequence
from functools import partial

from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Label

from ladechat.catalog import SERVER
from ladechat.keys import TITLES, key_names
from ladechat.own_keys import in_own_keys, keymap_of, with_own_keys
from ladechat.palette import Palette
from ladechat.screens.footer import key_in_unit
from ladechat.widgets.bars.message_line import MessageLine
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.cells import printable
from ladechat.widgets.formatting import plural
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.presenter import Presenter
from ladechat.widgets.transcript.transcript import Transcript
from ladechat.widgets.units import PASS

WELCOME = (
    "ladechat: words of one colour come from one pass of the model. A pass checks guesses, and keeps what the model "
    "would have written anyway.\n"
    "New here? /learn shows how, in ten minutes. F6 slows an answer down, F1 is help, ? explains the panels.\n"
    "Ask one of these, by a click or Tab:"
)
COPY_HELP = "A copy: the conversation {why}. What you ask here is saved in the copy; Ctrl+O lists both."
IN_PALETTE_ALREADY = ("quit", "interrupt")


def welcome(decoder: str) -> str:
    """Return the first notice of a conversation: what is seen, and how to begin; "" where a server decodes."""
    text = WELCOME if Palette.detect().colour else WELCOME.replace("of one colour", "marked alike")
    return "" if decoder == SERVER.name else text


class ConversationView(Vertical):
    """A conversation on the left, the panels about its decoding on the right, and controls below. The first notice is
    `welcome`, with questions that may be asked by a click.
    """

    def __init__(self, controls: Widget, welcome: str = "", questions: Sequence[str] = ()) -> None:
        super().__init__()
        self.transcript = Transcript(id="transcript")
        self.side = SidePanels(id="side")
        self.status = StatusLine(id="status")
        self._controls = controls
        self._title = Label(id="conversation-title", markup=False)
        self._copy = Label("(copy)", id="copy")
        self.recording = Label("● rec", id="recording")
        self._exporting = Label(id="exporting", markup=False)
        self._timeline = SeekBar(id="timeline")
        self.presenter = Presenter(self.transcript, self.side, self.status, self._timeline, welcome, questions)

    def compose(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Vertical(id="talk"):
                yield self._title
                yield self.transcript
                yield MessageLine()
            yield self.side
        yield self._timeline
        yield self._controls
        with Horizontal(id="status-bar"):
            yield self.status
            yield self._copy
            yield self._exporting
            yield self.recording

    def on_mount(self) -> None:
        self.watch(self.app, "palette", self._show_palette)
        self.watch(self.app, "said", self._make_room)

    def _show_palette(self, palette: Palette) -> None:
        self.side.palette = self.transcript.palette = palette

    def _make_room(self, said: Sequence[object]) -> None:
        """Give a message the row of the empty line at the end: a message of one row moves no text."""
        self.transcript.tight = bool(said)

    def show_title(self, title: str) -> None:
        """Show the title of the conversation above it; nothing if it has none."""
        if (shown := printable(title)) != self._title.content:
            self._title.display = bool(shown)
            self._title.update(shown)

    def show_copy(self, why: str) -> None:
        """Show that the conversation is a copy, and why; hide that if `why` is ""."""
        self._copy.display = bool(why)
        self._copy.tooltip = with_own_keys(COPY_HELP.format(why=why), self.app)

    def show_export(self, doing: str) -> None:
        """Show the progress of an export; nothing if none is running."""
        self._exporting.display = bool(doing)
        self._exporting.update(printable(doing))

    def show_pace(self, steps_per_second: float | None, paused: bool, waiting: str = "") -> None:
        """Show the requested pace, and the queue of questions."""
        status, rate = self.status, steps_per_second
        status.rate = "" if rate is None else f"{rate:g} {plural(rate, status.unit)}/s"
        status.paused, status.waiting = paused, waiting
        self.side.show_pace(slowed=rate is not None)


def commands(screen: Screen[None], keys: Iterable[Binding], unit: str = PASS) -> Iterable[SystemCommand]:
    """Yield the action of every active key by name, for the command palette, where a step is a `unit`."""
    keymap = keymap_of(screen.app)
    for binding in (key_in_unit(in_own_keys(key, keymap), unit) for key in keys):
        if binding.id not in IN_PALETTE_ALREADY and screen.check_action(binding.action, ()):
            action = partial(screen.app.run_action, binding.action, screen)
            title = TITLES.get(binding.id or "", binding.description)
            yield SystemCommand(title, f"{key_names(binding)} · {binding.tooltip}", action)
