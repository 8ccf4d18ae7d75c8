"""The history of one token of the answer, in sentences; without drafts, what else was likely for each of the latest."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from rich.style import Style
from textual.reactive import reactive

from ladechat import protocol
from ladechat.widgets.cells import cell_len, visible
from ladechat.widgets.panels.panel import AnswerPanel, Needs, Row
from ladechat.widgets.steps.token_history import (
    NEGLIGIBLE,
    TokenHistory,
    last_drafted,
    named_rivals,
    sentences,
    share,
    token_history,
)

MOST_STEPS = 512
"""Number of remembered steps of the answer; a token's history spans only a few passes."""
TOKEN_CELLS, SHARE_CELLS, BAR_CELLS = 14, 6, 12
ROOMY = 56
"""The least width, in cells, of a list with bars."""


class BiographyPanel(AnswerPanel):
    """Shows the history of the selected token, or of the latest one that was accepted from a draft."""

    NAME = "history of a token"
    SHOWS = "What else was likely, where the latest accepted draft came from, and how often it was guessed before."
    COMES = "F10 shows it first, and so does a click on a token; where there is room, it stands below the drafts."
    NEEDS = Needs(least=4, usual=6, most=9)
    ALONE = Needs(least=4, usual=6, most=40)

    alone: reactive[bool] = reactive(False, layout=True)
    """Whether no panel shows drafts: the latest tokens are listed, each with what else was likely."""

    @property
    def title(self) -> str:
        return "what else was likely" if self.alone else self.NAME

    def needs(self) -> Needs:
        return self.ALONE if self.alone else super().needs()

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
        if self.alone and any(self._latest()):
            chosen = self._chosen
            said = () if chosen is None else sentences(chosen)
            below = [line for text in said for line in self.sentence(text, width)]
            latest = [*islice(self._latest(), max(height - 1 - len(below), 0))]
            facts = ["" if chosen is None else f"‹{visible(chosen.piece)}›", ""]
            title = self.header(width, (self.title, "likely"), facts)
            return [title, *(self._likely(*one, width) for one in reversed(latest)), *below]
        titles = (self.title, "history")
        history = self._history()
        if history is None:
            return self.only(width, titles, self.explain())
        row = self.header(width, titles, [f"‹{visible(history.piece)}›", ""])
        style = self.palette.style_of_step(history.step, history.emitted) if history.drafted else self.title_style
        if len(row) == 3:
            row[-1] = (row[-1][0], style)
        return [row, *(line for text in sentences(history) for line in self.sentence(text, width))]

    def explain(self) -> str:
        history = self._history()
        if self._chosen is None and self.alone and any(self._latest()):
            return (
                "The latest tokens with their probabilities, and the likeliest others; bold: likelier, but not drawn."
            )
        if history is None and (not self._steps or self._steps[-1].draft is not None):
            return "Tells where an accepted draft came from, as soon as there is one."
        if history is None:
            return "Plain decoding: no token was guessed before its pass."
        return " ".join([f"‹{visible(history.piece)}›:", *sentences(history)])

    def _latest(self) -> Iterator[tuple[protocol.Step, int]]:
        """Yield the tokens whose rivals are known, the latest first: the step, and the index in it."""
        for step in reversed(self._steps):
            yield from ((step, token) for token in reversed(range(len(step.rivals))) if step.rivals[token].pieces)

    def _likely(self, step: protocol.Step, token: int, width: int) -> Row:
        """Return a token with its probability, and as many of the others as fit, of those that are not negligible."""
        own = step.logprobs[token]
        same, named = named_rivals(own, step.rivals[token])
        row = [*self.cell(step.pieces[token], TOKEN_CELLS, self.step_style(step, token))]
        row.append((share(own).rjust(SHARE_CELLS), Style()))
        if width >= ROOMY:
            row.append((f" {'█' * round(math.exp(min(own, 0.0)) * BAR_CELLS):{BAR_CELLS}}", self.faded(0.5)))
        for place, text in enumerate(named):
            if (
                place != same
                and share(step.rivals[token].logprobs[place]) != NEGLIGIBLE
                and sum(cell_len(part) for part, _ in row) + 2 + cell_len(text) <= width
            ):
                likelier = step.rivals[token].logprobs[place] > own
                row.append((f"  {text}", self.title_style if likelier else self.muted))
        return row

    def _history(self) -> TokenHistory | None:
        if self._chosen is not None:
            return self._chosen
        steps = [step for step in self._steps if self._until is None or step.index <= self._until]
        place = last_drafted(steps)
        return None if place is None else token_history(steps, place)
