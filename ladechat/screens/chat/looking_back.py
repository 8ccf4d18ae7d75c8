"""Looking back: the steps of an answer, one by one, with keys and mouse, while it is generated or later."""

from collections.abc import Iterable

from textual import on
from textual.binding import ActiveBinding
from textual.widgets import TextArea

from ladechat.keys import LEFT_OUT_WHILE_LOOKING, WALK_KEYS
from ladechat.screens.chat.pace_keys import PaceKeys
from ladechat.screens.footer import leave_out
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.inspection import Inspection
from ladechat.widgets.prompt.prompt import Prompt
from ladechat.widgets.steps.answer_steps import NEVER_KNOWN, StepPointedAt

STEPS_DROPPED = "How this answer came about is no longer kept: later answers have taken its place."


class LookingBack(PaceKeys):
    """Shows an earlier step in the panels, until the user returns to the newest state."""

    @property
    def _inspection(self) -> Inspection:
        return self.view.presenter.inspection

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_look_back(self) -> None:
        """Show the previous step; at first, the latest step that has something to show."""
        if self._inspection.running:
            self._inspection.walk(-1)
        else:
            self._inspection.look_at_latest()
        self._looked()

    def action_look_on(self) -> None:
        """Show the next step."""
        self._inspection.walk(1)
        self._looked()

    def action_first_step(self) -> None:
        """Show the first step of the answer."""
        self._inspection.seek(0)
        self._looked()

    def action_last_step(self) -> None:
        """Show the last step of the answer."""
        self._inspection.seek(1)
        self._looked()

    def action_leave_steps(self) -> None:
        """Show the newest state again."""
        self._inspection.leave()
        self._looked()

    def action_take_step(self) -> None:
        """Take one step of a paused answer, and show it."""
        self.action_leave_steps()
        super().action_take_step()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: looking back if there are steps, and moving while looking back."""
        match action:
            case "look_back":
                return self.view.presenter.answers.latest is not None
            case "look_on":
                return self._inspection.running and not self._inspection.at_newest
            case "first_step" | "last_step" | "leave_steps":
                return self._inspection.running
        return super().check_action(action, parameters)

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """Hides other keys in the footer while looking back, and the key for looking back during an answer."""
        bindings = super().active_bindings
        if self._inspection.running:
            leave_out(bindings, LEFT_OUT_WHILE_LOOKING)
        elif self._session.asking:
            leave_out(bindings, ("look_back",))
        return bindings

    def _keys_that_act(self) -> Iterable[str]:
        yield from super()._keys_that_act()
        if self._inspection.running:
            yield from WALK_KEYS
        elif self.view.presenter.answers.latest is not None:
            yield "left"

    def _looked(self) -> None:
        """Lend the arrow keys to looking back until something is typed, even if the prompt has text."""
        self._prompt.lent = frozenset(WALK_KEYS if self._inspection.running else ())
        self._show_pace()
        self.refresh_bindings()

    # --- mouse --------------------------------------------------------------------------------------------------------

    @on(StepPointedAt)
    def _step_pointed_at(self, event: StepPointedAt) -> None:
        if event.turn is None:
            self.notify(NEVER_KNOWN)
        elif not self._inspection.look_at_step(event.turn, event.step, event.token):
            self.notify(STEPS_DROPPED)
        self._prompt.focus()
        self._looked()

    @on(SeekBar.Sought, "#timeline")
    def _place_sought(self, event: SeekBar.Sought) -> None:
        self._inspection.seek(event.fraction)
        self._looked()

    # --- the end of looking back --------------------------------------------------------------------------------------

    @on(Prompt.Sent)
    def _leave_for_question(self) -> None:
        self.action_leave_steps()

    @on(TextArea.Changed)
    def _give_keys_back(self) -> None:
        self._prompt.lent = frozenset()
