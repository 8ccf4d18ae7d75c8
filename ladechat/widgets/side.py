"""What stands beside the conversation: three panels and three sliders."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import reactive

from ladechat.palette import Palette
from ladechat.protocol import GUESSES_RANGE, NGRAM_RANGE, WINDOW_RANGE, Settings, Step, TurnFinished
from ladechat.widgets.panel import Panel
from ladechat.widgets.pool_panel import PoolPanel
from ladechat.widgets.slider import Slider
from ladechat.widgets.speed_panel import SpeedPanel
from ladechat.widgets.window_panel import WindowPanel

WINDOW_FRAME_ROWS = 3
"""Rows of the window panel besides those of the window: its header, its columns' names and its legend."""


class SidePanels(Vertical):
    """Shows each step, and the settings that are in force."""

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, settings: Settings, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._settings = settings

    def compose(self) -> ComposeResult:
        settings = self._settings
        yield WindowPanel(id="window")
        yield PoolPanel(id="pool")
        yield SpeedPanel(id="speed")
        with Vertical(id="sliders"):
            yield Slider("W", settings.window, *WINDOW_RANGE, id="slider-window", tooltip="Positions ahead.")
            yield Slider("N", settings.ngram, *NGRAM_RANGE, id="slider-ngram", tooltip="Tokens in an n-gram.")
            yield Slider("G", settings.guesses, *GUESSES_RANGE, id="slider-guesses", tooltip="N-grams tried in a step.")

    def on_mount(self) -> None:
        self.show_settings(self._settings)

    def show_steps(self, steps: Sequence[Step]) -> None:
        """Take in steps: the panels count all of them, and draw the last."""
        for panel in (self.query_one(WindowPanel), self.query_one(PoolPanel), self.query_one(SpeedPanel)):
            for step in steps:
                panel.show_step(step)

    def show_context(self, tokens: int) -> None:
        """How many tokens prompt and answer may have together."""
        self.query_one(SpeedPanel).context_length = tokens

    def show_finished(self, event: TurnFinished) -> None:
        """The sum of an answer."""
        self.query_one(SpeedPanel).show_finished(event)

    def show_settings(self, settings: Settings) -> None:
        """Bring the sliders where the engine says they are, and give the window the room it needs."""
        self.query_one("#slider-window", Slider).value = settings.window
        self.query_one("#slider-ngram", Slider).value = settings.ngram
        self.query_one("#slider-guesses", Slider).value = settings.guesses
        self.query_one("#sliders").disabled = settings.decoder == "autoregressive"
        self.query_one(WindowPanel).styles.height = settings.ngram + WINDOW_FRAME_ROWS

    def clear(self) -> None:
        """Begin to count anew."""
        self.query_one(WindowPanel).clear()
        self.query_one(PoolPanel).clear()
        self.query_one(SpeedPanel).clear()

    def watch_palette(self, palette: Palette) -> None:
        for panel in self.query(Panel):
            panel.palette = palette
