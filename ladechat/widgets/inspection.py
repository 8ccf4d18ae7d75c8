"""Looking back: any step of an answer that is on the screen, with the panels and the conversation showing it."""

from ladechat.widgets.answer_steps import AnswerSteps, KeptAnswers
from ladechat.widgets.panel import LAST_TELLING
from ladechat.widgets.seek_bar import SeekBar
from ladechat.widgets.side import SidePanels
from ladechat.widgets.status_line import StatusLine
from ladechat.widgets.transcript import Transcript

HOW_TO = "← → · Esc newest"


class Inspection:
    """Which step is looked at, and what shows it. An answer that is being written goes on meanwhile.

    Args:
        answers: those that can be looked at.
        timeline: shows where in the answer one is.
    """

    def __init__(
        self,
        answers: KeptAnswers,
        transcript: Transcript,
        side: SidePanels,
        status: StatusLine,
        timeline: SeekBar,
    ) -> None:
        self._answers = answers
        self._transcript = transcript
        self._side = side
        self._status = status
        self._timeline = timeline

    @property
    def running(self) -> bool:
        """Is a step looked at?"""
        return self._side.looked_at is not None

    @property
    def at_newest(self) -> bool:
        """Is that the newest step of all?"""
        looked_at = self._side.looked_at
        if looked_at is None or looked_at.answer is not self._side.answer:
            return False
        return looked_at.place == len(looked_at.answer) - 1

    def look_at_step(self, turn: int, index: int, token: int = 0) -> bool:
        """Look at a step of an answer, and there at a token; False if its steps are not kept."""
        answer = self._answers.get(turn)
        if answer is None or not len(answer):
            return False
        self._look(answer, index, token)
        return True

    def look_at_latest(self) -> None:
        """Look back at the latest answer: at the step that the panels show, or at the one before if it is the last."""
        turn = self._answers.latest
        answer = None if turn is None else self._answers.get(turn)
        if answer is None:
            return
        shown = answer.telling if answer.finished is not None else None
        before_last = len(answer) - 2
        self._look(answer, before_last if shown is None else min(shown, before_last))

    def walk(self, steps: int) -> None:
        """So many steps on, or back if they are negative."""
        looked_at = self._side.looked_at
        if looked_at is not None:
            self._look(looked_at.answer, looked_at.place + steps)

    def seek(self, fraction: float) -> None:
        """To the step that is at a fraction of the answer, 0 to 1."""
        looked_at = self._side.looked_at
        if looked_at is not None:
            self._look(looked_at.answer, round(fraction * (len(looked_at.answer) - 1)))

    def leave(self) -> None:
        """Show the newest state again."""
        if self.running:
            self._side.leave_steps()
            self._transcript.unmark()
            self._timeline.display = False
            self._status.mode = ""

    def _look(self, answer: AnswerSteps, place: int, token: int = 0) -> None:
        """Look at the step at a place, or at the nearest that there is."""
        place = min(max(place, 0), len(answer) - 1)
        self._side.look_at(answer, place, token)
        step = answer.step(place)
        self._timeline.display = True
        self._transcript.mark(step.turn, step.index)
        self.show_place()

    def show_place(self) -> None:
        """Say where in the answer one is; it may have grown."""
        looked_at = self._side.looked_at
        if looked_at is not None:
            steps = len(looked_at.answer)
            self._timeline.fraction = looked_at.place / max(steps - 1, 1)
            answer = looked_at.answer
            if answer is not self._side.answer:
                which = " of an earlier answer"
            elif answer.finished is not None and looked_at.place == answer.telling:
                which = f", {LAST_TELLING}"
            else:
                which = " of this answer"
            self._status.mode = f"pass {looked_at.place + 1:,} of {steps:,}{which} · {HOW_TO}"
