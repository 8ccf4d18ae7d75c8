"""What stands beside the conversation: the panels, and the sliders."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.reactive import reactive

from ladechat.palette import Palette
from ladechat.protocol import DecoderInfo, PolicyChoice, Settings, Step, TurnFinished, Value
from ladechat.widgets.biography_panel import BiographyPanel
from ladechat.widgets.formatting import info_of
from ladechat.widgets.lens_panel import LensPanel
from ladechat.widgets.mask_panel import MaskPanel
from ladechat.widgets.panel import Panel
from ladechat.widgets.policy_panel import PolicyPanel
from ladechat.widgets.pool_panel import PoolPanel
from ladechat.widgets.sliders import Sliders
from ladechat.widgets.speed_panel import SpeedPanel
from ladechat.widgets.window_panel import WindowPanel

WINDOW_FRAME_ROWS = 5
"""Rows of the window panel besides the window's own: header, positions, the fresh row, legend, what came true."""

LENS_FRAME_ROWS = 3
"""Rows of the panel of pseudo states besides its layers: header, positions, legend."""
TRANSFER = "transfer"
"""What a decoder needs that has pseudo states."""
ROOMY_COLUMNS, ROOMY_ROWS = 64, 40
"""With so much room, the mask stands beside the pool, and the biography below both."""


class View(StrEnum):
    """What of a step is shown: its panels, which have the others too where there is room, or one thing alone."""

    PANELS = "panels"
    MASK = "mask"
    BIOGRAPHY = "biography"

    @property
    def next(self) -> "View":
        """The one after this, in turn."""
        views = list(View)
        return views[(views.index(self) + 1) % len(views)]


class Arrangement(NamedTuple):
    """Which panels are shown, and how high: calm, because it follows from what whole turns need.

    Attributes:
        window, drafts: whether these panels are shown.
        seen_window, seen_drafts: whether a step of this turn, with this decoder, had something for them.
        new_decoder: whether no step of this decoder has been seen.
        window_rows: rows of the Jacobi window.
        lens: whether the pseudo states are shown: with a decoder that has some, whether or not a step shows them.
        lens_rows: layers of them.
    """

    window: bool = True
    drafts: bool = True
    seen_window: bool = False
    seen_drafts: bool = False
    new_decoder: bool = True
    window_rows: int = 2
    lens: bool = False
    lens_rows: int = 4

    def after_step(self, step: Step) -> "Arrangement":
        """A panel comes when it is needed. It goes only where a decoder begins, at its first step."""
        window, drafts = step.window is not None, step.draft is not None or step.pool is not None
        if not window and not drafts and step.lens is None:
            return self
        return Arrangement(
            window=window or (self.window and not self.new_decoder),
            drafts=drafts or (self.drafts and not self.new_decoder),
            seen_window=window or self.seen_window,
            seen_drafts=drafts or self.seen_drafts,
            new_decoder=False,
            window_rows=len(step.window.rows) if step.window else self.window_rows,
            lens=step.lens is not None or self.lens,
            lens_rows=len(step.lens.rows) if step.lens else self.lens_rows,
        )

    def for_turn(self) -> "Arrangement":
        """A new turn begins with the panels that the turn before has used."""
        if not self.seen_window and not self.seen_drafts:
            return self
        kept = self._replace(window=self.seen_window, drafts=self.seen_drafts)
        return kept._replace(seen_window=False, seen_drafts=False)

    def for_decoder(self, info: DecoderInfo) -> "Arrangement":
        """Until the first step of a decoder says more: a window, unless it decodes plainly or chooses by itself, or
        has pseudo states.
        """
        lens = info.needs == TRANSFER
        window = info.tree_attention and info.by_hand is None and not lens
        return Arrangement(window=window, window_rows=self.window_rows, lens=lens, lens_rows=self.lens_rows)


class SidePanels(Vertical):
    """Shows each step, and the settings that are in force."""

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.arrangement = Arrangement()
        self.shown = View.PANELS
        self._decoder: DecoderInfo | None = None
        self._roomy = False

    def compose(self) -> ComposeResult:
        yield PolicyPanel(id="policy")
        yield WindowPanel(id="window")
        yield LensPanel(id="lens")
        with Horizontal(id="pass"):
            yield PoolPanel(id="pool")
            yield MaskPanel(id="mask")
        yield BiographyPanel(id="biography")
        yield SpeedPanel(id="speed")
        yield Sliders(id="sliders")

    def show_steps(self, steps: Sequence[Step]) -> None:
        """Take in steps: the panels count all of them, and draw the last."""
        for step in steps:
            self.query_one(WindowPanel).show_step(step)
            self.query_one(LensPanel).show_step(step)
            self.query_one(PoolPanel).show_step(step)
            self.query_one(MaskPanel).show_step(step)
            self.query_one(BiographyPanel).show_step(step)
            self.query_one(SpeedPanel).show_step(step)
            self.arrangement = self.arrangement.after_step(step)
        self._apply()

    def show_context(self, tokens: int) -> None:
        """How many tokens prompt and answer may have together."""
        self.query_one(SpeedPanel).context_length = tokens

    def show_choice(self, choice: PolicyChoice) -> None:
        """How much the adaptive policy drafts."""
        self.query_one(PolicyPanel).show(choice)

    def show_finished(self, event: TurnFinished) -> None:
        """The sum of an answer."""
        self.query_one(SpeedPanel).show_finished(event)

    def show_settings(
        self, settings: Settings, decoders: Mapping[str, DecoderInfo], known: Mapping[str, Value]
    ) -> None:
        """Show the sliders of the decoder where the engine says they are; see `Sliders.show` for `known`."""
        info = info_of(settings.decoder, decoders)
        by_hand = None if info.by_hand is None else info_of(info.by_hand, decoders)
        self.query_one(Sliders).show(settings, info, by_hand, known)
        if self._decoder is None or self._decoder.name != info.name:
            self.arrangement = self.arrangement.for_decoder(info)
        self._decoder = info
        self._apply()

    def restore(self, arrangement: Arrangement) -> None:
        """Take over an arrangement, of the same decoder."""
        self.arrangement = arrangement
        self._apply()

    def switch_view(self) -> None:
        """Show the next thing alone, or all panels again."""
        self.shown = self.shown.next
        self._apply()

    def on_resize(self, _event: events.Resize) -> None:
        """What there is room for follows from the size alone."""
        width, height = self.content_size
        self._roomy = width >= ROOMY_COLUMNS and height >= ROOMY_ROWS
        self._apply()

    def explanations(self) -> list[tuple[str, str]]:
        """Each panel that is on the screen by its name, and what it says of itself; then the sliders."""
        panels = [(panel.NAME, panel.explain()) for panel in self.query(Panel) if panel.region.area]
        sliders = self.query_one(Sliders).parameter_sliders
        return [*panels, *((f"{one.label.strip()} = {one.value}", one.parameter.help) for one in sliders)]

    def _apply(self) -> None:
        now, panels = self.arrangement, self.shown is View.PANELS
        more = panels and self._roomy and now.drafts
        self.set_class(more, "-roomy")
        by_itself = self._decoder is not None and self._decoder.by_hand is not None
        self.query_one(PolicyPanel).display = panels and by_itself
        window = self.query_one(WindowPanel)
        window.display = panels and now.window
        window.styles.height = now.window_rows + WINDOW_FRAME_ROWS
        lens = self.query_one(LensPanel)
        lens.display = panels and now.lens
        lens.styles.height = now.lens_rows + LENS_FRAME_ROWS
        drafts = self.query_one(PoolPanel).display = panels and now.drafts
        mask = self.query_one(MaskPanel).display = more or self.shown is View.MASK
        self.query_one("#pass").display = drafts or mask
        self.query_one(BiographyPanel).display = more or self.shown is View.BIOGRAPHY
        self.query_one(SpeedPanel).set_class(panels and not now.drafts, "-alone")

    def clear(self) -> None:
        """Forget the turn, and begin to count anew."""
        self.restore(self.arrangement.for_turn())
        self.query_one(PolicyPanel).clear()
        self.query_one(WindowPanel).clear()
        self.query_one(LensPanel).clear()
        self.query_one(PoolPanel).clear()
        self.query_one(MaskPanel).clear()
        self.query_one(BiographyPanel).clear()
        self.query_one(SpeedPanel).clear()

    def reset(self) -> None:
        """As before the first event."""
        self._decoder = None
        self.clear()
        self.restore(Arrangement())

    def watch_palette(self, palette: Palette) -> None:
        for panel in self.query(Panel):
            panel.palette = palette
