"""What is on the screen, what can be set, and which keys there are: made from the tables that the app itself uses."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Static

from ladechat.commands import COMMANDS
from ladechat.keys import APP_KEY_GROUPS, HELP_KEYS, key_names
from ladechat.protocol import DecoderInfo
from ladechat.widgets.cells import printable
from ladechat.widgets.message_line import MessageLine
from ladechat.widgets.panel import Panel
from ladechat.widgets.sliders import TEMPERATURE_HELP, TOP_P_HELP, Sliders

NAME_CELLS = 19
PASSES = (
    ("a colour", "One forward pass of the model: these tokens came together. Plain ones came alone."),
    ("underlined, bold", "A token that was drafted. The last of a pass is mostly the model's own: its colour alone."),
    ("pass, slot", "A pass is one run of the model, one step of decoding; a slot is a token that it computes in it."),
)
"""What all screens show."""

PANELS = (
    (
        "window",
        "Jacobi window",
        "Guesses at W positions ahead, of the last N − 1 passes; a column of the window runs slanted (↘): an n-gram.",
    ),
    (
        "lens",
        "pseudo states",
        "Hidden transfer: what each guess reads at every layer; the last one counts.",
    ),
    (
        "pool",
        "n-gram pool, drafts",
        "Guesses for this pass: ✓ the model agreed, ✗ it did not, · it was not asked.",
    ),
    ("mask", "attention mask", "Which slots of the pass see which: each its own branch alone."),
    ("biography", "biography", "Where the latest accepted draft came from, and how often it was guessed before."),
    ("policy", "how much to draft", "Of auto: what a pass costs by its slots, and how many tokens it should bring."),
    ("speed", "speed", "Tokens a pass, passes saved, and how long it took; × compares with plain decoding."),
)
"""The panels: their ids, their names on the screen, and what they show."""

ELSEWHERE = {
    "window": "In the chat with lookahead or Jacobi decoding: Ctrl+P, or move the slider W.",
    "lens": "In the chat with hidden transfer: Ctrl+P.",
    "pool": "In the chat with any decoder that drafts.",
    "mask": "In the chat by F10, and beside the pool where there is room.",
    "biography": "In the chat by F10, and below the pool where there is room.",
    "policy": "In the chat with auto.",
    "speed": "In the chat, where F2 shows the panels.",
}
"""Where a panel is to be seen that is not on the screen, by its id."""

ALWAYS = (
    ("the text", "That of plain decoding, token for token, whatever is set: only speed differs."),
    ("more of it", "/learn in the chat, or ladechat learn: seven scenes of a minute, on the real engine."),
)
"""What holds on all screens."""


class HelpScreen(ModalScreen[None]):
    """Explains the screen that it was opened on.

    Args:
        screen: the one below.
        decoders: those that can be chosen.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(HELP_KEYS)

    def __init__(self, screen: Screen[None], decoders: Iterable[DecoderInfo]) -> None:
        super().__init__()
        self._keys = [one for one in screen.BINDINGS if isinstance(one, Binding)]
        self._decoders = list(decoders)
        self._sliders = bool(screen.query(Sliders))
        self._panels = {panel.id for panel in screen.query(Panel) if panel.region.area}

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for heading, rows in self._sections():
                yield Static(heading, classes="heading")
                yield Static(_table(rows))
        yield MessageLine()
        yield Footer(compact=True)

    def _sections(self) -> Iterable[tuple[str, Sequence[tuple[str, str]]]]:
        yield "What you see", [*PASSES, *((name, text) for id_, name, text in PANELS if id_ in self._panels), *ALWAYS]
        away = [(name, f"{text} {ELSEWHERE[id_]}") for id_, name, text in PANELS if id_ not in self._panels]
        if away:
            yield "Not on the screen now", away
        if self._sliders:
            yield "What you can set", [*self._settings(), ("T", TEMPERATURE_HELP), ("P", TOP_P_HELP)]
        yield "Decoders", [(info.label, info.help) for info in self._decoders]
        yield from self._key_sections()

    def _key_sections(self) -> Iterable[tuple[str, Sequence[tuple[str, str]]]]:
        """Those of the chat by subject, with the commands that do the same."""
        keys = {one.id: one for one in self._keys}
        commands = {one.action: f" (/{one.name})" for one in COMMANDS}
        if keys.keys() == {id_ for _, ids in APP_KEY_GROUPS for id_ in ids}:
            for heading, ids in APP_KEY_GROUPS:
                group = [keys[id_] for id_ in ids]
                yield heading, [(key_names(one), f"{one.tooltip}{commands.get(one.action, '')}") for one in group]
        else:
            yield "Keys", [(key_names(one), one.tooltip) for one in keys.values()]

    def _settings(self) -> list[tuple[str, str]]:
        """Each parameter once; where a decoder means something else by the same label, with its name."""
        found: dict[str, str] = {}
        for info in self._decoders:
            for one in info.parameters:
                other = found.get(one.label, one.help) != one.help
                found[f"{one.label}, {info.label}" if other else one.label] = one.help
        return list(found.items())

    def action_close(self) -> None:
        """Back to the screen below."""
        self.dismiss()


def _table(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=NAME_CELLS, max_width=NAME_CELLS)
    table.add_column(ratio=1)
    for name, text in rows:
        table.add_row(Text(printable(name), "bold"), Text(printable(text)))
    return table
