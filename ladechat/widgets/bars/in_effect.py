"""What shapes the next answers and is not as usual: one line, while there is anything to say."""

from collections.abc import Iterable

from rich.segment import Segment
from textual.reactive import reactive

from ladechat.own_keys import with_own_keys
from ladechat.protocol import ThinkingSwitch
from ladechat.widgets.cells import cell_len, shorten
from ladechat.widgets.strips import OneLine

SEPARATOR = " · "
CELLS_FOR_KEYS = 100
"""The least width, in cells, of a line that also says what changes each part."""
LEAST_SYSTEM_CELLS = 8
"""The room of a system prompt where there is hardly any."""


class InEffect(OneLine):
    """``preset: pirate (/preset) · system: Be brief and … (/system) · at most 64 tokens (/limit) · formatted (Ctrl+G)``

    Attributes:
        preset: the preset that was taken last; "" if there is none.
        system: the system prompt, of which the first words are shown; "" if there is none.
        limit: the longest answer, in tokens; None if it is the usual one.
        thinking: whether the model should think first, on or off; auto: as it does by itself.
        formatted: whether answers are formatted as Markdown, and so have no colours of passes.
    """

    DEFAULT_CSS = """
    InEffect { display: none; color: $text-muted; background: $surface; }
    """

    preset = reactive("")
    system = reactive("")
    limit: reactive[int | None] = reactive(None)
    thinking: reactive[ThinkingSwitch] = reactive[ThinkingSwitch]("auto")
    formatted = reactive(False)

    def show(self, preset: str, system: str, limit: int | None, thinking: ThinkingSwitch, *, formatted: bool) -> None:
        self.preset, self.system, self.limit, self.thinking, self.formatted = preset, system, limit, thinking, formatted
        self.display = bool(preset or system or limit or formatted) or thinking != "auto"

    def segments(self, width: int) -> Iterable[Segment]:
        """Return the parts; the system prompt has the room that the others leave."""
        keys = width >= CELLS_FOR_KEYS
        first = [f"preset: {self.preset}{' (/preset)' * keys}"] if self.preset else []
        parts = [f"at most {self.limit:,} tokens{' (/limit)' * keys}"] if self.limit is not None else []
        if self.thinking != "auto":
            parts.append(f"thinking {self.thinking}{' (/thinking)' * keys}")
        formatted = with_own_keys(f"formatted{' (Ctrl+G)' * keys}", self.app)
        parts += [formatted] * self.formatted
        if self.system:
            before, after = "system: ", " (/system)" * keys
            room = max(width - cell_len(SEPARATOR.join([*first, before + after, *parts])), LEAST_SYSTEM_CELLS)
            parts.insert(0, f"{before}{shorten(' '.join(self.system.split()), room)}{after}")
        return [Segment(shorten(SEPARATOR.join([*first, *parts]), width), self.rich_style)]
