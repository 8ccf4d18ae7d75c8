"""What stands beside the conversation: the panels, and the sliders."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import reactive

from ladechat.palette import Palette
from ladechat.protocol import GUESSES_RANGE, NGRAM_RANGE, WINDOW_RANGE, DecoderName, Settings, Step, Tuned, TurnFinished
from ladechat.widgets.panel import Panel
from ladechat.widgets.pool_panel import PoolPanel
from ladechat.widgets.slider import Slider
from ladechat.widgets.speed_panel import SpeedPanel
from ladechat.widgets.tuner_panel import TunerPanel
from ladechat.widgets.window_panel import WindowPanel

TEMPERATURE_UNITS = (0, 20)
TOP_P_UNITS = (1, 20)

WITHOUT_MEANING: dict[DecoderName, set[str]] = {
    "lookahead": set(),
    "prompt_lookup": {"guesses"},
    "jacobi": {"ngram", "guesses"},
    "autoregressive": {"window", "ngram", "guesses"},
}
"""The settings that say nothing to a decoder."""

CHOSEN_BY_AUTO = {"window", "ngram", "guesses"}

WINDOW_FRAME_ROWS = 3
"""Rows of the window panel besides those of the window: its header, its columns' names and its legend."""


class SidePanels(Vertical):
    """Shows each step, and the settings that are in force."""

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, settings: Settings, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._settings = settings
        self._windowless = True
        self._ngram: int | None = None

    def compose(self) -> ComposeResult:
        yield TunerPanel(id="tuner")
        yield WindowPanel(id="window")
        yield PoolPanel(id="pool")
        yield SpeedPanel(id="speed")
        with Vertical(id="sliders"):
            yield self._slider("W", "window", *WINDOW_RANGE, tooltip="Positions ahead.")
            yield self._slider("N", "ngram", *NGRAM_RANGE, tooltip="Tokens in an n-gram.")
            yield self._slider("G", "guesses", *GUESSES_RANGE, tooltip="N-grams tried in a step.")
            with Horizontal(id="sampling"):
                drawn = "Temperature: 0 takes the likeliest token, above it tokens are drawn."
                yield self._slider("T", "temperature", *TEMPERATURE_UNITS, unit=0.1, tooltip=drawn)
                likely = "Top-p: tokens are drawn from the likeliest ones that have this probability together."
                yield self._slider("P", "top_p", *TOP_P_UNITS, unit=0.05, tooltip=likely)

    def _slider(self, label: str, setting: str, least: int, most: int, unit: float = 1, *, tooltip: str) -> Slider:
        value = round(getattr(self._settings, setting) / unit)
        name = f"slider-{setting.replace('_', '-')}"
        return Slider(label, value, least, most, unit=unit, setting=setting, id=name, tooltip=tooltip)

    def on_mount(self) -> None:
        self.show_settings(self._settings)

    def show_steps(self, steps: Sequence[Step]) -> None:
        """Take in steps: the panels count all of them, and draw the last."""
        for panel in (self.query_one(WindowPanel), self.query_one(PoolPanel), self.query_one(SpeedPanel)):
            for step in steps:
                panel.show_step(step)
        if self._ngram is None and any(step.window is not None for step in steps):  # auto of before it told
            self._windowless = False
            self._arrange()

    def show_context(self, tokens: int) -> None:
        """How many tokens prompt and answer may have together."""
        self.query_one(SpeedPanel).context_length = tokens

    def show_tuned(self, event: Tuned) -> None:
        """What `auto` has taken. One that tries a window for a moment leaves the panels where they are."""
        self.query_one(TunerPanel).show(event)
        if not event.exploring:
            self._windowless, self._ngram = not event.window, event.ngram
            self._arrange()

    def show_finished(self, event: TurnFinished) -> None:
        """The sum of an answer."""
        self.query_one(SpeedPanel).show_finished(event)

    def show_settings(self, settings: Settings) -> None:
        """Bring the sliders where the engine says they are, and give the window the room it needs."""
        for slider in self.query(Slider):
            slider.show(getattr(settings, slider.setting))
            greedy = settings.temperature == 0 and slider.setting == "top_p"
            slider.disabled = greedy or slider.setting in WITHOUT_MEANING[settings.decoder]
            slider.set_class(slider.disabled or (settings.auto and slider.setting in CHOSEN_BY_AUTO), "-idle")
        self._settings = settings
        self._arrange()

    def _arrange(self) -> None:
        """With `auto` its chart stands where the window does, as long as there is none."""
        tuning = self._settings.auto and self._settings.decoder == "lookahead"
        self.query_one(TunerPanel).display = tuning
        window = self.query_one(WindowPanel)
        window.display = not (tuning and self._windowless)
        ngram = self._ngram if tuning and self._ngram is not None else self._settings.ngram
        window.styles.height = ngram + WINDOW_FRAME_ROWS

    def clear(self) -> None:
        """Begin to count anew."""
        self._windowless, self._ngram = True, None
        self._arrange()
        self.query_one(TunerPanel).clear()
        self.query_one(WindowPanel).clear()
        self.query_one(PoolPanel).clear()
        self.query_one(SpeedPanel).clear()

    def watch_palette(self, palette: Palette) -> None:
        for panel in self.query(Panel):
            panel.palette = palette
