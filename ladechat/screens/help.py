"""What is on the screen, what can be set, and which keys there are: made from the tables that the app itself uses."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Static

from ladechat.keys import HELP_KEYS
from ladechat.protocol import DecoderInfo
from ladechat.widgets.cells import printable
from ladechat.widgets.sliders import TEMPERATURE_HELP, TOP_P_HELP

NAME_CELLS = 19
SEEN = (
    ("a colour", "One forward pass of the model: these tokens came together. Plain ones came alone."),
    ("underlined, bold", "A token that was drafted. The last of a pass is mostly the model's own: its colour alone."),
    ("Jacobi window", "Guesses at W positions ahead, of the last N − 1 passes; down the stairs they read as n-grams."),
    ("pseudo states", "Hidden transfer: what each guess reads at every layer, up to the last one, which counts."),
    ("n-gram pool, drafts", "What was guessed for this pass. ✓ the model agreed, ✗ it did not, · it was not asked."),
    ("attention mask", "Which slots of the pass see which: each its own branch alone. F10 shows it by itself."),
    ("biography", "Where the latest accepted draft came from, and how often it was guessed before."),
    ("how much to draft", "Of auto: what a pass costs by its slots, and how many tokens it should bring."),
    ("speed", "Tokens a pass, passes saved, and how long it took; × compares with plain decoding."),
    ("the text", "That of plain decoding, token for token, whatever is set: only speed differs."),
    ("more of it", "Ctrl+P, Learn how it works: seven scenes of a minute, on the real engine; or ladechat learn."),
)
"""What is on the screen, by its name there."""


class HelpScreen(ModalScreen[None]):
    """Explains the screen that it was opened on.

    Args:
        bindings: the keys of that screen.
        decoders: those that can be chosen.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(HELP_KEYS)

    def __init__(self, bindings: Iterable[Binding], decoders: Iterable[DecoderInfo]) -> None:
        super().__init__()
        self._keys, self._decoders = list(bindings), list(decoders)

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for heading, rows in self._sections():
                yield Static(heading, classes="heading")
                yield Static(_table(rows))
        yield Footer(compact=True)

    def _sections(self) -> Iterable[tuple[str, Sequence[tuple[str, str]]]]:
        yield "What you see", SEEN
        yield "What you can set", [*self._settings(), ("T", TEMPERATURE_HELP), ("P", TOP_P_HELP)]
        yield "Decoders", [(info.label, info.help) for info in self._decoders]
        keys = {one.action: one for one in self._keys}
        yield "Keys", [(self.app.get_key_display(one), one.tooltip) for one in keys.values()]

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
