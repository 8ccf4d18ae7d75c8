"""The history of one token of the answer, in sentences."""

from collections import deque
from collections.abc import Sequence

from ladechat import protocol
from ladechat.widgets.cells import visible
from ladechat.widgets.panels.panel import AnswerPanel, Needs, Row
from ladechat.widgets.steps.token_history import TokenHistory, last_drafted, sentences, token_history

MOST_STEPS = 512
"""Number of remembered steps of the answer; a token's history spans only a few passes."""


class BiographyPanel(AnswerPanel):
    """Shows the history of the selected token, or of the latest one that was accepted from a draft."""

    NAME = "history of a token"
    SHOWS = "What else was likely, where the latest accepted draft came from, and how often it was guessed before."
    COMES = "F10 shows it first, and so does a click on a token; where there is room, it stands below the drafts."
    NEEDS = Needs(least=4, usual=6, most=9)

    def forget(self) -> None:
        self._steps: deque[protocol.Step] = deque(maxlen=MOST_STEPS)
        self._chosen: TokenHistory | None = None
        self._until: int | None = None
        """The index of the last step that counts; None: all of them."""

    def show_step(self, step: protocol.Step) -> None:
        self._steps.append(step)
        self._until = None
        self.redraw()

    def stay_at(self, step: protocol.Step) -> None:
        """Show the latest accepted draft up to this step, the one at which the other panels stay."""
        self._until = step.index
        self.redraw()

    def show_token(self, steps: Sequence[protocol.Step], place: int) -> None:
        """Show token number `place` of the answer with these steps, until `clear`."""
        self._chosen = token_history(steps, place)
        self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        titles = ("history of a token", "history")
        history = self._history()
        if history is None:
            return self.only(width, titles, self.explain())
        row = self.header(width, titles, [f"‹{visible(history.piece)}›", ""])
        style = self.palette.style_of_step(history.step, history.emitted) if history.drafted else self.title_style
        if len(row) == 3:
            row[-1] = (row[-1][0], style)
        return [row, *(line for text in sentences(history) for line in self.sentence(text, width))]

    def explain(self) -> str:
        """Return the sentences about the token, or why there are none."""
        history = self._history()
        if history is None and (not self._steps or self._steps[-1].draft is not None):
            return "Tells where an accepted draft came from, as soon as there is one."
        if history is None:
            return "Plain decoding: no token was guessed before its pass."
        return " ".join([f"‹{visible(history.piece)}›:", *sentences(history)])

    def _history(self) -> TokenHistory | None:
        if self._chosen is not None:
            return self._chosen
        steps = [step for step in self._steps if self._until is None or step.index <= self._until]
        place = last_drafted(steps)
        return None if place is None else token_history(steps, place)
