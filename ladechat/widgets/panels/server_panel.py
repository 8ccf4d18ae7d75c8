"""The server that decodes: what it tells of that and what it does not, and its own figures beside ours."""

from typing import NamedTuple

from rich.style import Style

from ladechat import protocol
from ladechat.protocol import ServerFigures, ServerInfo
from ladechat.widgets.cells import printable, shorten
from ladechat.widgets.formatting import plural, what_is_reported
from ladechat.widgets.panels.panel import AnswerPanel, Needs, Row
from ladechat.widgets.units import unit_of

LEAST_TABLE_ROWS = 3
"""A table of fewer rows says nothing: head and one figure, and an empty row above it."""
UNKNOWN = "–"


class Figure(NamedTuple):
    """A row of the table: a name, the figure of this side, and the server's own."""

    name: str
    here: str
    there: str


class ServerPanel(AnswerPanel):
    """Stands in the place of the window, the pool and the tree, which a server does not tell.

    A sentence says what a colour is and what is not reported. Below it are two columns of figures: what came here, and
    what the server says of the same answer at its end.
    """

    NAME = "server"
    SHOWS = "The server, what it tells of its decoding, and its own figures beside those that came here."
    COMES = "It comes with --server."
    NEEDS = Needs(least=4, usual=14, most=14)

    info: ServerInfo | None = None
    """The server; None: this machine decodes."""
    _answered = True
    """Whether the answer on the screen is its own."""

    def forget(self) -> None:
        self._tokens = self._timed_tokens = self._steps = self._thoughts = 0
        self._ms = 0.0
        self._finished: protocol.TurnFinished | None = None

    def show_server(self, info: ServerInfo | None, *, answered: bool) -> None:
        """Show a server; `answered` is whether the answer on the screen came from it: only then figures are shown."""
        if self._answered and not answered:
            self.forget()
        self.info, self._answered = info, answered
        self.redraw()

    def show_step(self, step: protocol.Step) -> None:
        if self.info is None or not self._answered:
            return
        self._tokens += len(step.token_ids)
        self._thoughts += step.reasoning
        self._steps += 1
        self._ms += step.timing.step_ms
        timed = step.timing.step_ms > 0  # the time of a first step, also of a continuation, is that of the prompt
        self._timed_tokens += len(step.token_ids) if timed else 0
        self._finished = None
        self.redraw()

    def show_finished(self, event: protocol.TurnFinished) -> None:
        self._finished = event
        self.redraw()

    def explain(self) -> str:
        if self.info is None:
            return ""
        text = f"{self.info.program} at {self.info.address} decodes. {what_is_reported(self.info)}"
        return f"{text} Here: what came over the network, and when. Server: what it says of the same answer at its end."

    def rows(self, width: int, height: int) -> list[Row]:
        info = self.info
        if info is None:
            return []
        rows = [self.header(width, ("server",), [printable(info.program), ""], Style(bold=True))]
        rows += [[(shorten(printable(info.address), width), self.muted)], *self.sentence(what_is_reported(info), width)]
        figures = self._figures(info)
        room = height - len(rows) - 1
        if figures and room >= LEAST_TABLE_ROWS - 1:
            rows += [[], *self._table(figures[: room - 1], width)]
        return rows

    def _figures(self, info: ServerInfo) -> list[Figure]:
        """Return the figures of the answer that are known, the most telling first."""
        if not self._steps:
            return []
        reported = self._finished.server if self._finished is not None and self._finished.server else ServerFigures()
        drafts = UNKNOWN if reported.accepted is None else f"{reported.accepted:,} of {reported.drafted or 0:,}"
        rate = 1000 * self._timed_tokens / self._ms if self._ms else None
        figures = [
            Figure("drafts accepted", UNKNOWN, drafts),
            Figure(plural(2, unit_of(info)), f"{self._steps:,}", _whole(reported.passes)),
            Figure("tokens", f"{self._tokens:,}" if info.passes else UNKNOWN, _whole(reported.tokens)),
            Figure("tokens/s", _rate(rate) if info.passes else UNKNOWN, _rate(reported.tokens_per_second)),
            Figure("thoughts", f"{self._thoughts:,}", UNKNOWN),
            Figure("prompt tokens", UNKNOWN, _whole(reported.prompt_tokens)),
        ]
        return [one for one in figures if (one.here, one.there) not in ((UNKNOWN, UNKNOWN), ("0", UNKNOWN))]

    def _table(self, figures: list[Figure], width: int) -> list[Row]:
        table = [Figure("", "here", "server"), *figures]
        names, *cells = (max(map(len, column)) for column in zip(*table, strict=True))
        gap = " " * max(1, min(3, width - names - sum(cells)) - 1)
        rows: list[Row] = []
        for name, *numbers in table:
            style = Style() if name else self.muted
            columns = [(gap + number.rjust(room), style) for number, room in zip(numbers, cells, strict=True)]
            rows.append([(name.ljust(names), self.muted), *columns])
        return rows


def _whole(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _rate(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:.1f}"
