"""Looking back: any step of an answer on the screen, shown in the panels and marked in the conversation."""

from ladechat.own_keys import with_own_keys
from ladechat.widgets.bars.seek_bar import SeekBar
from ladechat.widgets.bars.status_line import StatusLine
from ladechat.widgets.panels.panel import why_telling
from ladechat.widgets.panels.side import SidePanels
from ladechat.widgets.steps.answer_steps import AnswerSteps, RecentAnswers
from ladechat.widgets.transcript.transcript import Transcript
from ladechat.widgets.units import unit_of

HOW_TO = "← → · Esc newest"


class Inspection:
    """Selects the step to look back at, and shows it, with its place in the answer on the timeline. An answer that is
    being written continues meanwhile.
    """

    def __init__(
        self,
        answers: RecentAnswers,
        transcript: Transcript,
        side: SidePanels,
        status: StatusLine,
        timeline: SeekBar,
    ) -> None:
        self._answers, self._transcript = answers, transcript
        self._side, self._status, self._timeline = side, status, timeline

    @property
    def running(self) -> bool:
        return self._side.looked_at is not None

    @property
    def at_newest(self) -> bool:
        """Whether that is the newest step of all."""
        at = self._side.looked_at
        return at is not None and at.answer is self._side.answer and at.place == len(at.answer) - 1

    def look_at_step(self, turn: int, index: int, token: int | None = None) -> bool:
        """Look back at a step of an answer, and at one of its tokens; return False if its steps are not stored."""
        answer = self._answers.get(turn)
        if answer:
            self._look(answer, index, token)
        return bool(answer)

    def look_at_latest(self) -> None:
        """Look back at the latest answer: at the step in the panels, or at the one before if that is the last."""
        turn = self._answers.latest
        answer = None if turn is None else self._answers.get(turn)
        if not answer:
            return
        shown = answer.telling if answer.finished is not None else None
        before_last = len(answer) - 2
        self._look(answer, before_last if shown is None else min(shown, before_last))

    def walk(self, steps: int) -> None:
        if (at := self._side.looked_at) is not None:
            self._look(at.answer, at.place + steps)

    def seek(self, fraction: float) -> None:
        """Move to the step at a fraction of the answer, 0 to 1."""
        if (at := self._side.looked_at) is not None:
            self._look(at.answer, round(fraction * (len(at.answer) - 1)))

    def leave(self) -> None:
        if self.running:
            self._side.leave_steps()
            self._transcript.unmark()
            self._timeline.display = False
            self._status.mode = ""

    def _look(self, answer: AnswerSteps, place: int, token: int | None = None) -> None:
        """Look back at the step at an index, or at the nearest one."""
        place = min(max(place, 0), len(answer) - 1)
        self._side.look_at(answer, place, token)
        step = answer.step(place)
        self._timeline.display = True
        self._transcript.mark(step.turn, step.index)
        self.show_place()

    def show_place(self) -> None:
        """Show the step's place in the answer, which may have grown."""
        if (at := self._side.looked_at) is not None:
            answer, steps, which = at.answer, len(at.answer), " of this answer"
            self._timeline.fraction = at.place / max(steps - 1, 1)
            if answer is not self._side.answer:
                which = " of an earlier answer"
            elif answer.finished is not None and at.place == answer.telling:
                which = f", {why_telling(at.steps[-1])[0]}"
            how_to = with_own_keys(HOW_TO, self._status.app, "look_on", "leave_steps")
            self._status.mode = f"{unit_of(at.answer.server)} {at.place + 1:,} of {steps:,}{which} · {how_to}"
