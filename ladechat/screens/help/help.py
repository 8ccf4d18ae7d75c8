"""The help: explanations, settings and keys, generated from the tables that the app itself uses."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from ladechat.catalog import SERVER
from ladechat.commands import COMMANDS
from ladechat.keys import HELP_KEYS, key_names
from ladechat.own_keys import in_own_keys, keymap_of, with_own_keys
from ladechat.protocol import DecoderInfo
from ladechat.screens.footer import key_in_unit
from ladechat.screens.styled_once import StyledOnce, bottom
from ladechat.widgets.cells import printable
from ladechat.widgets.panels.panel import Panel
from ladechat.widgets.sliders.sliders import TEMPERATURE_HELP, TOP_P_HELP, Sliders
from ladechat.widgets.units import CHUNK, PASS, STEP, in_unit

Rows = Sequence[tuple[str, str]]
"""Names, each with its explanation."""
Sections = Sequence[tuple[str, Rows]]
Subjects = Sequence[tuple[str, Sequence[str]]]

NAME_CELLS = 20
LEAST_BESIDE = 56
"""The least width of an explanation beside its name, in cells."""
SHOWS_PANELS = "view"
"""The id of the key that shows hidden panels."""
PASSES = (
    ("a colour", "One forward pass of the model: these tokens came together. Plain ones came alone."),
    ("underlined, bold", "A token that was drafted; both mean the same. The last of a pass is mostly not drafted."),
    ("pass, slot", "A pass is one run of the model; a slot is one token that goes into it."),
    (
        "draft, guess",
        "A draft is a guessed token; a pool's guess, a chain of drafts. ✓ accepted, ✗ wrong, – not reached.",
    ),
    ("tokens a pass", "S in the papers. Divided by the cost of a pass, in plain passes, it is the speedup."),
)
"""The explanations for all screens."""
SERVED = {
    PASS: (
        *PASSES[:2],
        ("tokens a pass", "A pass is one run of the model. It gives a token, and the drafts it accepts."),
    ),
    CHUNK: (("a colour", "A chunk of the server's stream: text that came together. It does not tell its passes."),),
    STEP: (("a colour", "One forward pass, or of a server that does not tell those, a chunk of its stream."),),
}
"""The same where a server decodes, by what a step is."""

DRAWN = (
    "The token is drawn first, from the same random numbers as in plain decoding; a draft is accepted if it is that "
    "token. One seed, one text."
)
ROUNDED = "Passes of different size round differently in float16 and bfloat16: two tokens that nearly tie may swap."
ALWAYS = (
    ("the text", "That of plain decoding, token for token, whatever W, N, G or decoder are: only speed differs."),
    ("temperature > 0", DRAWN),
    ("16 bits", ROUNDED),
    ("the first window", "Before the first pass, each cell of the Jacobi window is a random token of the text."),
    ("the window moves", "By one place a pass, however many tokens were accepted."),
    ("no second model", "Speculative decoding asks a small model for drafts; here the model guesses for itself."),
    ("more of it", "/learn in the chat, or ladechat learn: seven scenes, ten minutes, on the real engine."),
)
"""What holds for every answer."""
OF_A_SERVER = (
    ("the text", "The server's own. Settings act from the next answer on; how it decodes was set when it was started."),
    ALWAYS[-1],
)
"""What holds for every answer of a server."""

LOOKAHEAD = "Break the Sequential Dependency of LLM Inference Using Lookahead Decoding"
TRANSFER = "Parallel Decoding via Hidden Transfer for Lossless Large Language Model Acceleration"
PAPERS = (
    ("lookahead decoding", f"Fu, Bailis, Stoica and Zhang 2024: {LOOKAHEAD}, arXiv 2402.02057."),
    ("hidden transfer", f"Wu et al. 2024: {TRANSFER}, arXiv 2404.12022."),
)


class HelpScreen(StyledOnce[None], ModalScreen[None]):
    """Explains the screen from which it was opened.

    Args:
        screen: the screen below.
        decoders: the decoders that can be chosen.
        subjects: headings for the screen's keys, each with the ids of its keys; empty: one heading for all.
        first: the sections at the top, with what the user has to know first.
        unit: what a step is.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(HELP_KEYS)

    def __init__(
        self,
        screen: Screen[None],
        decoders: Iterable[DecoderInfo],
        subjects: Subjects = (),
        first: Sections = (),
        unit: str = PASS,
    ) -> None:
        super().__init__()
        self._first = first
        self._unit = unit
        keymap = keymap_of(screen.app)
        keys = (in_own_keys(one, keymap) for one in screen.BINDINGS if isinstance(one, Binding))
        self._keys = [key_in_unit(one, unit) for one in keys]
        self._subjects = subjects
        self._decoders = list(decoders)
        self._served = any(info.name == SERVER.name for info in self._decoders)
        self._sliders = bool(screen.query(Sliders))
        self._panels = [panel for panel in screen.query(Panel) if panel.shows and not panel.unreported]

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            for heading, rows in self._sections():
                yield Static(heading, classes="heading")
                yield Static(_Table([(name, with_own_keys(text, self.app)) for name, text in rows]))
        yield from bottom()

    def _sections(self) -> Iterable[tuple[str, Rows]]:
        """Yield the sections: a few lines about the colours, then the keys, which most users want, then the rest."""
        yield from self._first
        yield "What you see", SERVED[self._unit] if self._served else PASSES
        yield from self._key_sections()
        if here := [(panel.title, panel.shows) for panel in self._panels if panel.region.area]:
            yield "Panels", here
        away = [(panel.title, f"{panel.shows} {panel.COMES}") for panel in self._panels if not panel.region.area]
        if away and SHOWS_PANELS in (key.id for key in self._keys):
            yield "Not on the screen now", away
        if self._sliders:
            yield "What you can set", [*self._settings(), ("T", TEMPERATURE_HELP), ("P", TOP_P_HELP)]
        if self._decoders:
            yield "Decoders", [(info.label, info.help) for info in self._decoders]
        yield "Good to know", OF_A_SERVER if self._served else ALWAYS
        yield "The papers", PAPERS

    def _key_sections(self) -> Iterable[tuple[str, Rows]]:
        """Yield the keys by subject, with the equivalent commands on screens with a prompt."""
        keys = {one.id: one for one in self._keys}
        commands = {one.action: f" (/{one.name})" for one in COMMANDS}
        for heading, ids in self._subjects:
            group = [keys[id_] for id_ in ids]
            rows = [(key_names(one), f"{one.tooltip}{commands.get(one.action, '')}") for one in group]
            yield in_unit(heading, self._unit), rows
        if not self._subjects:
            yield "Keys", [(key_names(one), one.tooltip) for one in self._keys]

    def _settings(self) -> list[tuple[str, str]]:
        """Return each parameter once; with the decoder's name where decoders use one label for different parameters."""
        found: dict[str, str] = {}
        for info in self._decoders:
            for one in info.parameters:
                other = found.get(one.label, one.help) != one.help
                found[f"{one.label}, {info.label}" if other else one.label] = one.help
        return list(found.items())


class _Table:
    """Names with their explanations beside them, or below them where the line is too short for both."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        beside = options.max_width >= LEAST_BESIDE
        table = Table.grid(padding=(0, 2) if beside else 0)
        if beside:
            table.add_column(min_width=NAME_CELLS, max_width=NAME_CELLS, overflow="fold")
        table.add_column(ratio=1, overflow="fold")
        for name, text in self._rows:
            cells = Text(printable(name), "bold"), Text(printable(text))
            if beside:
                table.add_row(*cells)
            else:
                table.add_row(cells[0])
                table.add_row(Padding(cells[1], (0, 0, 0, 2)))
        yield table
