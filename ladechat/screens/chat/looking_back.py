"""Looking back: the steps of an answer, one by one, with keys and mouse, while it is generated or later."""

from ladechat.screens.chat.active_keys import ActiveKeys
from ladechat.screens.chat.context import Available, ChatContext
from ladechat.widgets.inspection import Inspection
from ladechat.widgets.steps.answer_steps import NEVER_KNOWN, StepPointedAt

STEPS_DROPPED = "The steps of this answer are no longer in memory: those of later answers took their place."


class LookingBack:
    """Shows an earlier step in the panels, until the user returns to the newest state. It gets the arrow keys."""

    def __init__(self, chat: ChatContext, keys: ActiveKeys) -> None:
        self._chat, self._keys = chat, keys
        presenter = chat.view.presenter
        self.available: Available = {
            "look_back": lambda: presenter.answers.latest is not None,
            "look_on": lambda: presenter.inspection.running and not presenter.inspection.at_newest,
            "first_step": lambda: presenter.inspection.running,
            "last_step": lambda: presenter.inspection.running,
            "leave_steps": lambda: presenter.inspection.running,
        }

    @property
    def _inspection(self) -> Inspection:
        return self._chat.view.presenter.inspection

    def action_look_back(self) -> None:
        """Show the previous step; at first, the latest step that has something to show."""
        if self._inspection.running:
            self._inspection.walk(-1)
        else:
            self._inspection.look_at_latest()
        self._keys.lend()

    def action_look_on(self) -> None:
        self._inspection.walk(1)
        self._keys.lend()

    def action_first_step(self) -> None:
        self.seek(0)

    def action_last_step(self) -> None:
        self.seek(1)

    def action_leave_steps(self) -> None:
        """Show the newest state again."""
        self._inspection.leave()
        self._keys.lend()

    def seek(self, fraction: float) -> None:
        """Show the step at a place of the answer: 0 is its beginning, 1 its end."""
        self._inspection.seek(fraction)
        self._keys.lend()

    def point_at(self, step: StepPointedAt) -> None:
        if step.turn is None:
            self._chat.notify(NEVER_KNOWN)
        elif not self._inspection.look_at_step(step.turn, step.step, step.token):
            self._chat.notify(STEPS_DROPPED)
        self._chat.view.side.point_at(step.diagonal)
        self._chat.prompt.focus()
        self._keys.lend()
