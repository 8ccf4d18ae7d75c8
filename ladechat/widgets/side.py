"""What stands beside the conversation: the panels, and the sliders."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import reactive

from ladechat.palette import Palette
from ladechat.protocol import DecoderInfo, PolicyChoice, Settings, Step, TurnFinished, Value
from ladechat.widgets.answer_steps import AnswerSteps
from ladechat.widgets.arrangement import Arrangement
from ladechat.widgets.formatting import info_of
from ladechat.widgets.lens_panel import LensPanel
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


class LookedAt(NamedTuple):
    """What the panels show while one looks back.

    Attributes:
        answer: it may still grow.
        steps: those of the answer, up to the one that is looked at.
        token: the place of the chosen token, among all tokens of the answer.
    """

    answer: AnswerSteps
    steps: list[Step]
    token: int

    @property
    def place(self) -> int:
        """The place of the step among those of the answer."""
        return len(self.steps) - 1


class SidePanels(Vertical):
    """Shows each step, and the settings that are in force.

    While one looks back, what comes is kept, and the panels stay with the step that is looked at.

    Attributes:
        arrangement: the one that the newest step needs.
        answer: the steps of the answer that is being written, or was written last.
        looked_at: what one looks back at; None where the panels show the newest.
    """

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.arrangement = Arrangement()
        self.answer = AnswerSteps()
        self.looked_at: LookedAt | None = None
        self._decoder: DecoderInfo | None = None

    def compose(self) -> ComposeResult:
        yield PolicyPanel(id="policy")
        yield WindowPanel(id="window")
        yield LensPanel(id="lens")
        yield PoolPanel(id="pool")
        yield SpeedPanel(id="speed")
        yield Sliders(id="sliders")

    def show_steps(self, steps: Sequence[Step]) -> None:
        """Take in steps: the panels count all of them, and draw the last."""
        for step in steps:
            self.arrangement = self.arrangement.after_step(step)
            self.answer.add(step, self.arrangement)
        if self.looked_at is None:
            self._count(steps)
            self._apply()

    def show_context(self, tokens: int) -> None:
        """How many tokens prompt and answer may have together."""
        self.query_one(SpeedPanel).context_length = tokens

    def show_choice(self, choice: PolicyChoice) -> None:
        """How much the adaptive policy drafts."""
        self.answer.add_choice(choice)
        if self.looked_at is None:
            self.query_one(PolicyPanel).show(choice)

    def show_finished(self, event: TurnFinished) -> None:
        """The sum of an answer. Its last step, the end of the text, says least: the last that accepted drafts stays."""
        self.answer.finished = event
        if self.looked_at is None:
            self._show_end()

    # --- looking back -------------------------------------------------------------------------------------------------

    def look_at(self, answer: AnswerSteps, place: int, token: int = 0) -> None:
        """Show what was there at a step, with figures up to it.

        Args:
            answer: its steps.
            place: of the step among them.
            token: the one that is chosen, among those of the step.
        """
        before = self.looked_at
        known = before.steps if before is not None and before.answer is answer else []
        steps = [*known[: place + 1], *(answer.step(later) for later in range(len(known), place + 1))]
        self.looked_at = LookedAt(answer, steps, token + sum(len(step.token_ids) for step in steps[:-1]))
        if not known or place < len(known):
            known = []
            self._forget()
        self._count(steps[len(known) :])
        self.query_one(PolicyPanel).show(answer.choice(place))
        self._apply()

    def leave_steps(self) -> None:
        """Show the newest again."""
        if self.looked_at is not None:
            self.looked_at = None
            self._forget()
            self._count([self.answer.step(place) for place in range(len(self.answer))])
            self.query_one(PolicyPanel).show(self.answer.choice())
            if self.answer.finished is not None:
                self._show_end()
            self._apply()

    def _count(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.query_one(WindowPanel).show_step(step)
            self.query_one(LensPanel).show_step(step)
            self.query_one(PoolPanel).show_step(step)
            self.query_one(SpeedPanel).show_step(step)

    def _show_end(self) -> None:
        answer, event = self.answer, self.answer.finished
        if event is not None:
            self.query_one(SpeedPanel).show_finished(event)
        if answer.telling is not None and answer.telling < len(answer) - 1:
            step = answer.step(answer.telling)
            self.query_one(WindowPanel).stay_at(step)
            self.query_one(LensPanel).stay_at(step)
            self.query_one(PoolPanel).stay_at(step)

    # --- settings -----------------------------------------------------------------------------------------------------

    def show_settings(
        self, settings: Settings, decoders: Mapping[str, DecoderInfo], known: Mapping[str, Value]
    ) -> None:
        """Show the sliders of the decoder where the engine says they are; see `Sliders.show` for `known`."""
        info = info_of(settings.decoder, decoders)
        by_hand = None if info.by_hand is None else info_of(info.by_hand, decoders)
        self.query_one(Sliders).show(settings, info, by_hand, known)
        if self._decoder is None or self._decoder.name != info.name:
            self.arrangement = self.arrangement.for_decoder(info)
        self.arrangement = self.arrangement._replace(policy=by_hand is not None)
        self._decoder = info
        self._apply()

    def restore(self, arrangement: Arrangement) -> None:
        """Take over an arrangement, of the same decoder."""
        self.arrangement = arrangement
        self._apply()

    def _apply(self) -> None:
        looked_at = self.looked_at
        shown = self.arrangement if looked_at is None else looked_at.answer.arrangement(looked_at.place)
        self.query_one(PolicyPanel).display = shown.policy
        window = self.query_one(WindowPanel)
        window.display = shown.window
        window.styles.height = shown.window_rows + WINDOW_FRAME_ROWS
        lens = self.query_one(LensPanel)
        lens.display = shown.lens
        lens.styles.height = shown.lens_rows + LENS_FRAME_ROWS
        self.query_one(PoolPanel).display = shown.drafts
        self.query_one(SpeedPanel).set_class(not shown.drafts, "-alone")

    def clear(self) -> None:
        """Forget the turn, and begin to count anew."""
        self.answer = AnswerSteps()
        self.restore(self.arrangement.for_turn())
        if self.looked_at is None:
            self._forget()

    def _forget(self) -> None:
        self.query_one(PolicyPanel).clear()
        self.query_one(WindowPanel).clear()
        self.query_one(LensPanel).clear()
        self.query_one(PoolPanel).clear()
        self.query_one(SpeedPanel).clear()

    def reset(self) -> None:
        """As before the first event."""
        self._decoder = None
        self.clear()
        self.restore(Arrangement())

    def watch_palette(self, palette: Palette) -> None:
        for panel in self.query(Panel):
            panel.palette = palette
