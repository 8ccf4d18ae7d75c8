"""The column beside the conversation: the panels, and the sliders."""

from collections.abc import Mapping, Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.layout import Layout
from textual.reactive import reactive
from textual.widgets import Label

from ladechat.own_keys import with_own_keys
from ladechat.palette import Palette
from ladechat.protocol import (
    MOST,
    DecoderInfo,
    PassCost,
    PolicyChoice,
    Ready,
    ServerInfo,
    Settings,
    Step,
    TurnFinished,
    Value,
)
from ladechat.widgets.formatting import info_of, what_is_reported
from ladechat.widgets.panels.biography_panel import BiographyPanel
from ladechat.widgets.panels.cost_panel import CostPanel
from ladechat.widgets.panels.explaining import Explained, explained, key_of
from ladechat.widgets.panels.lens_panel import LensPanel
from ladechat.widgets.panels.mask_panel import MaskPanel
from ladechat.widgets.panels.panel import AnswerPanel, Panel, StepPanel
from ladechat.widgets.panels.policy_panel import PolicyPanel
from ladechat.widgets.panels.pool_panel import PoolPanel
from ladechat.widgets.panels.server_panel import ServerPanel
from ladechat.widgets.panels.shared_rows import SharedRows
from ladechat.widgets.panels.slot_strip import Sizes, SlotStrip
from ladechat.widgets.panels.speed_panel import SpeedPanel
from ladechat.widgets.panels.views import FOLLOWING, LEFT_OUT, WAY_BACK, View
from ladechat.widgets.panels.window_panel import WindowPanel
from ladechat.widgets.sliders.sliders import Sliders
from ladechat.widgets.steps.answer_steps import TRANSFER, AnswerSteps, Arrangement, LookedAt
from ladechat.widgets.steps.births import Births

ROOMY_COLUMNS, ROOMY_ROWS = 64, 40
"""Minimum size for the mask beside the pool."""
ROWS = SharedRows()


class SidePanels(Vertical):
    """Shows each step, and the active settings.

    While the user looks back, new steps are stored, and the panels stay with the selected step.

    Attributes:
        arrangement: the arrangement for the newest step.
        answer: the steps of the answer that is being written, or was written last.
        looked_at: the selected step; None while the panels show the newest.
    """

    DEFAULT_CSS = """
    SidePanels > #controls { dock: bottom; height: auto; }
    SidePanels #way-back { display: none; color: $text-muted; }
    SidePanels #slots { height: 2; }
    """

    palette: reactive[Palette] = reactive(Palette)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._slowed = False
        self.arrangement = Arrangement()
        self.answer = AnswerSteps()
        self.looked_at: LookedAt | None = None
        self.shown = View.PANELS
        self._decoder = ""
        self._server: ServerInfo | None = None
        self._sizes: Sizes | None = None
        """W, N and G of a decoder that has them."""
        self._roomy = False

    def compose(self) -> ComposeResult:
        births = Births()
        yield ServerPanel(id="server")
        yield PolicyPanel(id="policy")
        yield WindowPanel(births, id="window")
        yield LensPanel(id="lens")
        yield PoolPanel(births, id="pool")
        yield MaskPanel(id="mask")
        yield BiographyPanel(id="biography")
        yield SpeedPanel(id="speed")
        with Vertical(id="controls"):
            yield Label(id="way-back", markup=False)
            yield Sliders(id="sliders")
            yield SlotStrip(id="slots")

    @property
    def layout(self) -> Layout:
        """The layout of the panels; the controls are docked."""
        return ROWS

    def on_mount(self) -> None:
        self.watch(self.query_one(Sliders), "values", self._show_slots, init=False)

    def _show_slots(self) -> None:
        """Show the slots that a pass has by W, N and G: as they are set, and as the sliders show them."""
        strip = self.query_one(SlotStrip)
        strip.show_sizes(self._sizes, Sizes.of(self.query_one(Sliders).values))
        strip.set_class(self._sizes is not None, "-known")

    def show_steps(self, steps: Sequence[Step]) -> None:
        """Add steps: the panels count all of them, and draw the last."""
        for step in steps:
            self._make_room(step)
            self.answer.add(step, self.arrangement)
            self.answer.decoder, self.answer.server = self._decoder, self._server
        if self.looked_at is None:
            self._count(steps)
            self._apply()

    def _make_room(self, step: Step) -> None:
        """Count the panels and the rows that a step needs."""
        self.arrangement = self.arrangement.after_step(step)
        self.query_one(PoolPanel).count(step)
        self.query_one(MaskPanel).count(step)

    def show_model(self, model: Ready) -> None:
        """Show the facts of a model that a panel needs: its context length, its layers, what was trained for it."""
        self.query_one(SpeedPanel).context_length = model.context_length if model.context_length < MOST else None
        self.show_server(model.server)
        self.query_one(LensPanel).show_model(model.layers, model.trained)

    def show_server(self, server: ServerInfo | None) -> None:
        """Show the server that decodes from now on; None: this machine does."""
        self._server = server
        self._show_who_decoded()
        self._apply()

    def _show_who_decoded(self) -> None:
        """Show which server has decoded the answer in the panels, and in those of drafts that it does not tell them."""
        answer = self.looked_at.answer if self.looked_at else self.answer
        server = answer.server if answer else self._server
        self.query_one(SpeedPanel).server = server
        now = server if self.looked_at else self._server
        self.query_one(ServerPanel).show_server(now, answered=server == now)
        for panel in self.query(Panel):
            if not isinstance(panel, SpeedPanel | ServerPanel):
                told = server is not None and server.logprobs and isinstance(panel, BiographyPanel)
                panel.unreported = "" if server is None or told else what_is_reported(server)

    def show_costs(self, costs: Sequence[PassCost]) -> None:
        known = costs if costs and costs[0].slots == 1 else ()
        self.query_one(SpeedPanel).costs = known
        for panel in self.query(CostPanel):
            panel.costs = known

    @on(WindowPanel.PointedAt)
    def _pointed_at(self, event: WindowPanel.PointedAt) -> None:
        event.stop()
        self.point_at(event.diagonal, event.slot)

    def point_at(self, diagonal: int | None = None, slot: int | None = None) -> None:
        """Mark a diagonal of the window and its n-gram, or one slot and what it sees, or nothing."""
        window, mask = self.query_one(WindowPanel), self.query_one(MaskPanel)
        window.diagonal = self.query_one(PoolPanel).diagonal = diagonal
        window.slot = mask.slot = slot

    def next_slot(self) -> None:
        self.query_one(WindowPanel).action_point(1)

    def show_pace(self, *, slowed: bool) -> None:
        """Show whether passes are slowed down for the viewer. The times of those that are do not count, nor that of the
        first pass at full speed, which comes after a rest.
        """
        before, self._slowed = self._slowed, slowed
        if slowed != before and self.answer.finished is None:
            self.show_untimed(None if slowed else len(self.answer) and len(self.answer) + 1)

    def show_untimed(self, passes: int | None) -> None:
        """Leave out the times of the first passes of this answer; of all if `passes` is None."""
        self.answer.untimed = passes
        if self.looked_at is None:
            self.query_one(SpeedPanel).untimed = passes

    def show_choice(self, choice: PolicyChoice) -> None:
        self.answer.add_choice(choice)
        if self.looked_at is None:
            self.query_one(PolicyPanel).show(choice)

    def show_finished(self, event: TurnFinished) -> None:
        """Show the totals of an answer. Its last step (the end of the text) shows little, so the panels go back to one
        that shows more, see `AnswerSteps.telling`.
        """
        self.answer.finished = event
        if self.looked_at is None:
            self._show_end()
            self._apply()

    def mend(self, pass_tokens: Sequence[int]) -> tuple[list[Step], list[Step]]:
        """Take the passes apart that a server has sent together; see `AnswerSteps.mend`."""
        came, passes = self.answer.mend(pass_tokens)
        if self.looked_at is None:
            self._count_anew()
        return came, passes

    def go_on(self) -> bool:
        """Prepare for a continuation; return whether steps of an earlier, unsettled continuation were dropped."""
        gone = self.answer.go_on()
        self.show_untimed(None if self._slowed else self.answer.untimed)
        if gone and self.looked_at is None:
            self._count_anew()
        return gone

    def look_at(self, answer: AnswerSteps, place: int, token: int | None = None) -> None:
        """Show the panels as they were at a step, with figures up to it.

        Args:
            answer: the answer of the step.
            place: the index of the step in the answer.
            token: the index of the token in the step that the user has pointed at; None: at none.
        """
        before = self.looked_at
        known = before.steps if before is not None and before.answer is answer else []
        steps = [*known[: place + 1], *(answer.step(later) for later in range(len(known), place + 1))]
        before_it = sum(len(step.token_ids) for step in steps[:-1])
        self.looked_at = LookedAt(answer, steps, (token or 0) + before_it, token is not None)
        if not known or place < len(known):
            known = []
            self._show_who_decoded()
            self._forget()
        self._count(steps[len(known) :])
        self.query_one(BiographyPanel).show_token(steps, self.looked_at.token)
        self.query_one(PolicyPanel).show(answer.choice(place))
        self._apply()

    def leave_steps(self) -> None:
        if self.looked_at is not None:
            self.looked_at = None
            self._show_who_decoded()
            self._count_anew()

    def show_answer(self, answer: AnswerSteps) -> None:
        """Show an earlier answer as it ended, in place of the current one."""
        self.answer = answer
        for place in range(len(answer)) if answer.decoder == self._decoder else ():
            self._make_room(answer.step(place))
        self._show_who_decoded()
        self._count_anew()

    def _count_anew(self) -> None:
        """Show the current answer again, with figures counted from its first step."""
        self._forget()
        self._count([self.answer.step(place) for place in range(len(self.answer))])
        self.query_one(PolicyPanel).show(self.answer.choice())
        if self.answer.finished is not None:
            self._show_end()
        self._apply()

    def _count(self, steps: Sequence[Step]) -> None:
        panels, answer = self.query(AnswerPanel), self.looked_at.answer if self.looked_at else self.answer
        self.query_one(SpeedPanel).untimed = answer.untimed
        for step in steps:
            for panel in panels:
                panel.show_step(step)

    def _show_end(self) -> None:
        answer, event = self.answer, self.answer.finished
        if event is not None:
            self.query_one(SpeedPanel).show_finished(event)
            self.query_one(ServerPanel).show_finished(event)
        if (place := answer.telling) is not None and place < len(answer) - 1:
            step = answer.step(place)
            for panel in self.query(StepPanel):
                panel.stay_at(step, len(answer))
            self.query_one(BiographyPanel).stay_at(step)
            self.query_one(PolicyPanel).show(answer.choice(place))

    def show_settings(
        self, settings: Settings, decoders: Mapping[str, DecoderInfo], known: Mapping[str, Value]
    ) -> None:
        """Set the decoder's sliders to the engine's values; see `Sliders.show` for `known`."""
        self.query_one("#controls").display = True
        info = info_of(settings.decoder, decoders)
        by_hand = None if info.by_hand is None else info_of(info.by_hand, decoders)
        values = {**known, **settings.parameters}
        own = {one.name: values.get(one.name, one.default) for one in info.parameters}
        self._sizes = Sizes.of(own)
        self.query_one(Sliders).show(settings, info, by_hand, known)
        self._show_slots()
        if self._decoder != info.name:
            self.arrangement = self.arrangement.for_decoder(info)
            for panel in self.query(Panel):
                panel.begin_anew()
        carriers = int(settings.parameters.get("carriers", 0)) if info.needs == TRANSFER else 0
        self.arrangement = self.arrangement._replace(
            policy=by_hand is not None, window_set=int(own.get("window", 0)), sizes=self._sizes or (), carriers=carriers
        )
        self._decoder = info.name
        self._apply()

    def hide_settings(self) -> None:
        """Hide the sliders and the window: nobody knows of them until `show_settings`."""
        self.query_one("#controls").display = False
        self.restore(self.arrangement._replace(window=False))

    def restore(self, arrangement: Arrangement) -> None:
        """Restore an arrangement of the same decoder."""
        self.arrangement = arrangement
        self._apply()

    def switch_view(self) -> None:
        """Switch to the next view: mask, biography, or all panels again."""
        self.shown = FOLLOWING[self.shown]
        way_back = self.query_one("#way-back", Label)
        way_back.update(with_own_keys(WAY_BACK[self.shown], self.app))
        way_back.display = self.shown is not View.PANELS
        self._apply()

    def on_resize(self, _event: events.Resize) -> None:
        width, height = self.content_size
        self._roomy = width >= ROOMY_COLUMNS and height >= ROOMY_ROWS
        self._apply()

    def explanations(self, only: str = "") -> list[tuple[str, str]]:
        """Return the name and the explanation of each visible panel and slider, or of the panel with this id alone."""
        return [explained(one) for one in self.on_screen if only in ("", key_of(one))]

    @property
    def on_screen(self) -> list[Explained]:
        sliders = self.query_one(Sliders).parameter_sliders
        return [one for one in (*self.query(Panel), *sliders) if one.region.area]

    def _apply(self) -> None:
        looked_at, panels = self.looked_at, self.shown is View.PANELS
        answer = looked_at.answer if looked_at else self.answer
        place = looked_at.place if looked_at else len(answer) - 1
        now = self.arrangement if looked_at is None else answer.arrangement(place)
        of_server = self.query_one(ServerPanel).info is not None
        if of_server:
            now = now._replace(policy=False, window=False, drafts=False, lens=False)
        more = panels and self._roomy and now.drafts
        token = panels and looked_at is not None and looked_at.pointed_at
        biography = self.query_one(BiographyPanel)
        biography.alone = not now.drafts and not biography.unreported
        shown: dict[type[Panel], bool] = {
            ServerPanel: panels and of_server,
            PolicyPanel: panels and now.policy,
            WindowPanel: panels and now.window,
            LensPanel: panels and now.lens,
            PoolPanel: now.drafts and self.shown is not View.MASK,
            MaskPanel: more or self.shown is View.MASK,
            BiographyPanel: now.drafts or biography.alone or token or self.shown is View.BIOGRAPHY,
            SpeedPanel: True,
        }
        for kind, display in shown.items():
            panel = self.query_one(kind)
            self._place(panel, display, panel.id in LEFT_OUT[View.BIOGRAPHY if token else self.shown])
        window, lens, mask = self.query_one(WindowPanel), self.query_one(LensPanel), self.query_one(MaskPanel)
        mask.beside = self.query_one(PoolPanel) if more else None
        window.beside_mask = mask.display
        window.ages, lens.layer_rows = now.window_rows, now.lens_rows
        ended = self.answer.finished is not None and looked_at is None
        if ended and answer.telling is not None:
            place = answer.telling
        then = answer.arrangement(place) if place >= 0 else Arrangement()
        window.width_set, mask.carriers = then.window_set, then.carriers
        self.query_one(SlotStrip).of_pass = Sizes(*then.sizes) if then.sizes else None
        window.awaits_answer = lens.awaits_answer = ended and self.answer.decoder != self._decoder

    def _place(self, panel: Panel, shown: bool, optional: bool) -> None:
        panel.display, panel.optional = shown, optional

    def clear(self) -> None:
        """Forget the turn and its figures."""
        self.point_at()
        self.answer = AnswerSteps()
        self.show_untimed(None if self._slowed else 0)
        if self.looked_at is None:
            self._show_who_decoded()
            self._forget()
        self.restore(self.arrangement.for_turn())

    def _forget(self) -> None:
        for panel in self.query(AnswerPanel):
            panel.clear()

    def reset(self) -> None:
        """Return to the state before the first event."""
        self._decoder = ""
        self.show_server(None)
        self.clear()
        self.restore(Arrangement())

    def watch_palette(self, palette: Palette) -> None:
        for panel in self.query(Panel):
            panel.palette = palette
