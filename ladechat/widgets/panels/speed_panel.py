"""The speed of an answer as it is generated: passes and tokens, which do not depend on the machine, then times."""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from rich.style import Style
from textual import events
from textual.reactive import reactive

from ladechat import protocol
from ladechat.widgets.cells import BLOCKS, ELLIPSIS, cell_len
from ladechat.widgets.formatting import counted, division, duration, gain, percent
from ladechat.widgets.panels.panel import AnswerPanel, Needs, Row, longest
from ladechat.widgets.panels.server_speed import SHOWS_OF_A_SERVER, ServerSpeed
from ladechat.widgets.steps.answer_steps import StepPointedAt
from ladechat.widgets.steps.pass_times import PassTimes, Times
from ladechat.widgets.units import unit_of

RECENT_MS = 2000.0
"""Tokens per second are measured over the latest steps that took this long together."""
MOST_BARS = MOST_UNTIMED = 512
SINGLE_FADED = 0.6, 0.7
"""How far the bars of single tokens fade, by turns: neighbours of several cells have to differ."""
PLAIN_FADED = 0.0, 0.3
"""The same for all other bars, where there are no colours."""
MOST_BAR_ROWS = 16
SCALE_CELLS = 3
"""Cells of the scale at the left of the bars."""
GAIN = 1.05
"""An estimated speedup below this counts as no gain, and is explained."""
LEAST_COMPARED = 4
"""Below this many compared passes, chance and a busy machine look alike."""
FEW_TOKENS = 1.2
"""Below this many tokens per pass, a lack of gain is attributed to few accepted drafts, else to the cost of a pass."""
NEARLY_FULL = 0.75
"""From this fraction of the context on, its use has a line even in a low panel."""
DIGITS_FROM_MS = 10.0
"""Below this, times have two digits: their quotient is the cost of a pass, which has two."""
CARRIED = "Pseudo states are in the cost, not the slots."
TALL = 8
"""A panel of at least this many lines always has that line."""


class Bar(NamedTuple):
    """A pass: the index of its step, the tokens it gave, and its width in cells."""

    step: int
    tokens: int
    cells: int


class SpeedPanel(AnswerPanel):
    """Figures above, one bar per step below: as high as it gave tokens, as wide as it took, a plain pass one cell.
    Every figure is a total over the events of this answer.

    The estimated speedup is the time that as many plain passes would have taken, as measured by the engine, divided by
    the time of the steps. It is at most the tokens per pass, since no pass is cheaper than a plain one. Where it comes
    out clearly above that, or passes far cheaper than when they were timed alone, something disturbed the machine, and
    no times are shown.
    """

    NAME = "speed"
    SHOWS = "Tokens a pass ÷ cost of a pass = speed; a bar is a pass: high by its tokens, wide by its time."
    COMES = "F2 shows the panels."
    NEEDS = Needs(least=4, usual=6, most=12)

    context_length: reactive[int | None] = reactive(None)
    """Maximum tokens of prompt and answer together; None until an engine has reported it."""
    costs: reactive[Sequence[protocol.PassCost]] = reactive(())
    """What passes cost on this machine, the first of one slot; empty if that is not known."""
    untimed: reactive[int | None] = reactive(0)
    """How many passes at the beginning of the answer are left out of its times, as they were slowed down for the
    viewer; None: all of them. A processor that idles between passes is slower.
    """

    server: reactive[protocol.ServerInfo | None] = reactive(None)
    """The server that decodes; None: this machine does."""

    @property
    def shows(self) -> str:
        return self.SHOWS if self.server is None else SHOWS_OF_A_SERVER[unit_of(self.server)]

    def forget(self) -> None:
        self._served = None if self.server is None else ServerSpeed(self.server)
        self._bar_lines = range(0)
        """The lines of the panel in which the bars were drawn."""
        self._last: protocol.Step | None = None
        self._finished: protocol.TurnFinished | None = None
        self._bars: deque[Bar] = deque(maxlen=MOST_BARS)
        self._rounded_off = 0.0
        """Time that the bars lack so far, in cells."""
        self._recent: deque[tuple[int, float]] = deque()
        self._recent_tokens, self._recent_ms = 0, 0.0
        self._steps = self._tokens = self._slots = 0
        self._times_after = [PassTimes()]
        """The sums after so many passes, as far as they may be left out."""
        self._all_times = PassTimes()

    def show_step(self, step: protocol.Step) -> None:
        tokens, timing = len(step.token_ids), step.timing
        self._last = step
        self._finished = None
        if self._served is not None:
            self._served.add(step)
        self._bars.append(Bar(step.index, tokens, self._cells_of(timing)))
        timed = tokens if timing.step_ms else 0  # the time of a server's first step is that of the prompt
        self._recent.append((timed, timing.step_ms))
        self._recent_tokens, self._recent_ms = self._recent_tokens + timed, self._recent_ms + timing.step_ms
        while self._recent_ms - self._recent[0][1] >= RECENT_MS:
            past_tokens, past_ms = self._recent.popleft()
            self._recent_tokens, self._recent_ms = self._recent_tokens - past_tokens, self._recent_ms - past_ms
        self._steps += 1
        self._tokens += tokens
        self._slots += timing.slots
        self._all_times = self._all_times.plus(step)
        if self._steps <= MOST_UNTIMED:
            self._times_after.append(self._all_times)
        self.redraw()

    def _cells_of(self, timing: protocol.Timing) -> int:
        """Return the width of a pass, at least one cell. What is rounded off goes to the next pass: equal widths of
        several bars are equal times.
        """
        exact = self._rounded_off + (timing.step_ms / timing.plain_ms if timing.plain_ms else 1.0)
        cells = max(1, min(round(exact), MOST_BARS))
        self._rounded_off = max(exact - cells, -0.5)
        return cells

    def show_finished(self, event: protocol.TurnFinished) -> None:
        """Show the time of the whole answer instead of that of its last pass; the other figures stay."""
        self._finished = event
        if self._served is not None:
            self._served.finish(event)
        self.redraw()

    @property
    def _looks_ahead(self) -> bool:
        last = self._last
        return last is not None and not (last.draft is None and last.window is None and last.pool is None)

    @property
    def _times(self) -> PassTimes:
        if self.untimed is None:
            return PassTimes()
        return self._all_times.since(self._times_after[min(self.untimed, len(self._times_after) - 1)])

    @property
    def tokens_per_second(self) -> float | None:
        """The rate of the latest passes, or of the whole answer once it has ended; without passes that do not count."""
        if self.untimed != 0:
            return 1000 * self._times.tokens / self._times.step_ms if self._times.step_ms else None
        if (done := self._finished) is not None and done.decode_seconds:
            return done.tokens_per_second
        return self._recent_tokens / self._recent_ms * 1000 if self._recent_ms else None

    @property
    def measured(self) -> tuple[float, float] | None:
        """The speedup and the tokens per pass; None if unknown or not credible, and for plain decoding."""
        means = self._means
        speedup = None if means is None or not self._looks_ahead else means.speedup
        return None if means is None or speedup is None else (speedup, means.tokens_per_pass)

    @property
    def _means(self) -> Times | None:
        """The mean times, by the engine's estimate once the answer has ended, unless that counts too much."""
        per_pass = self._tokens / self._steps if self._steps else 0.0
        estimated = None if self._finished is None or self.untimed != 0 else self._finished.estimated_speedup
        means = self._times.means(per_pass, self.costs)
        if estimated is None:
            return means
        return Times(per_pass / estimated, 1.0, per_pass, 1.0 if means is None else means.cost_alone)

    @property
    def no_times(self) -> list[str]:
        """Why times are not shown, in versions from long to short; [] if they are."""
        if self.untimed is None or 0 < self._steps <= self.untimed:
            return ["one by one: no times"]
        busy = self._looks_ahead and self._means is not None and self.measured is None
        if busy and (self._finished is not None or self._times.compared >= LEAST_COMPARED):
            return ["times disagree, as on a busy machine: none shown", "times disagree: none shown"]
        return []

    def verdict(self) -> list[str]:
        """Return tokens a pass ÷ cost of a pass = speed, from long to short; [] for plain decoding."""
        if self._looks_ahead and self.no_times:
            return self.no_times
        measured = self.measured
        return gain(measured[1], measured[0]) if measured is not None and measured[0] else []

    def advice(self) -> list[str]:
        """Return what to try if there is no gain, in versions from long to short."""
        measured = self.measured
        if measured is None or measured[0] >= GAIN or self.no_times:
            return []
        if measured[1] < FEW_TOKENS:
            return ["try a text that repeats or copies: more drafts are accepted", "a text that repeats gains more"]
        if self._carries:
            return [CARRIED, "pseudo states cost too"]
        if self._last is not None and self._last.window is not None:
            return ["try smaller W, N and G: fewer slots, a cheaper pass", "smaller W, N, G: a cheaper pass"]
        return ["on a GPU, more slots cost hardly more"]

    def explain(self) -> str:
        if self._last is None:
            return f"Measures an answer from its first {unit_of(self.server)} on."
        if self._served is not None:
            return self._served.explain()
        text = (
            f"{counted(self._steps, 'pass')} gave {counted(self._tokens, 'token')}, on any machine: "
            f"{self._tokens / self._steps:.2f} tokens a pass (S in the papers). Plain decoding: a pass for each token."
        )
        if (measured := self.measured) is not None and measured[0] and not self.no_times:
            tokens, cost, speed = division(measured[1], measured[0])
            text += (
                f" Here a pass took as long as {cost} plain ones, and {tokens} ÷ {cost} ≈ {speed}: about {speed} times "
                "as fast as plain decoding."
            )
            text += f" {CARRIED}" if self._carries else ""
        wide = "" if self.no_times else ", as wide as it took, in plain passes"
        return f"{text} A bar is a pass, as high as it gave tokens{wide}; grey: one token."

    @property
    def _carries(self) -> bool:
        """Whether the slots of the last pass carried pseudo states, which take time and are no slots."""
        return self._last is not None and self._last.lens is not None

    def rows(self, width: int, height: int) -> list[Row]:
        titles = ("speed · tokens ↑ time →", "speed")
        if self._last is None:
            return self.only(width, titles, f"Measured from the first {unit_of(self.server)} on.")
        tall = height >= TALL
        drafts = self.verdict() if self._served is None else self._served.drafts()
        notes = [longest(width, drafts), longest(width, self.advice()) if tall else ""]
        notes += [self._fullness(width, height), longest(width, self._cost())]
        notes = [text for text in notes if text][: max(0, height - 3)]
        rows = [self.header(width, titles, self._passes(), Style(bold=True)), self._figures(width)]
        self._bar_lines = range(len(rows), max(len(rows), min(len(rows) + MOST_BAR_ROWS, height - len(notes))))
        rows += self._chart(width, len(self._bar_lines))
        return [*rows, *([(text, self.muted)] for text in notes)]

    def _passes(self) -> list[str]:
        """Return what does not depend on the machine, passes and tokens, in versions from long to short."""
        if self._served is not None:
            return self._served.counts()
        passes = counted(self._steps, "pass")
        if not self._looks_ahead and self._tokens > self._steps:  # the figures include those of the decoder before it
            return [f"plain now · {passes} for {self._tokens:,}", f"{passes} for {self._tokens:,}"]
        if not self._looks_ahead:
            return ["plain decoding"]
        if self._tokens > self._steps:
            return [f"{passes} instead of {self._tokens:,}", f"{passes} for {self._tokens:,}"]
        return [f"{passes} for {counted(self._tokens, 'token')}", passes]

    def _figures(self, width: int) -> Row:
        second = self.tokens_per_second
        rate = "–" if second is None else f"{second:.1f}" if second < 100 else f"{second:.0f}"
        per_pass = f"{self._tokens / self._steps:.2f}" if self._steps else "–"
        figures = [(per_pass, " tokens a pass"), (rate, " tok/s")]
        if self._served is not None:
            figures = self._served.figures(rate)
        elif self.no_times:
            del figures[1:]
        row: Row = []
        for number, unit in figures:
            gap = "   " if row else ""
            if cell_len("".join(text for text, _ in row) + gap + number + unit) <= width:
                row += [(gap, Style()), (number, Style(bold=True)), (unit, self.muted)]
        return row

    def _chart(self, width: int, height: int) -> list[Row]:
        """Return one bar per step, the newest at the right, older ones that do not fit as an ellipsis. The scale goes
        to N, or the longest step, with 1 where a bar of one token ends.
        """
        if height <= 0 or self._last is None:
            return []
        visible = self._visible_bars(width)
        top = max(2, *(bar.tokens for bar in visible), len(self._last.window.rows) + 1 if self._last.window else 0)
        scale = ["   "] * height
        scale[height - math.ceil(height / top)] = " 1 "
        scale[0] = f"{top:>2} "
        if len(visible) < self._steps:
            scale[-1] = scale[-1][:2] + ELLIPSIS
        styles = [self._style_of(bar) for bar in visible]
        eighths = [max(1, round(bar.tokens / top * height * 8)) for bar in visible]
        blank = (" " * (width - SCALE_CELLS - sum(bar.cells for bar in visible)), Style())
        return [
            [
                (label, self.muted),
                blank,
                *(
                    (BLOCKS[min(max(high - 8 * (height - 1 - line), 0), 8)] * bar.cells, style)
                    for bar, high, style in zip(visible, eighths, styles, strict=True)
                ),
            ]
            for line, label in enumerate(scale)
        ]

    def _style_of(self, bar: Bar) -> Style:
        """Return the colour of a bar; that of its step, if it gave several tokens."""
        colour = self.palette.style_of_step(bar.step, bar.tokens).color
        faded = SINGLE_FADED if bar.tokens == 1 else PLAIN_FADED
        return self.faded(faded[bar.step % 2]) if colour is None else Style(color=colour)

    def _visible_bars(self, width: int) -> list[Bar]:
        """Return the latest bars that fit, the first of them cut to fit. Those whose times do not count are one cell
        wide.
        """
        room, visible = max(1, width - SCALE_CELLS), deque[Bar]()
        untimed = self._steps if self.no_times else self.untimed or 0
        for place, bar in zip(range(self._steps - 1, -1, -1), reversed(self._bars), strict=False):
            cells = min(1 if place < untimed else bar.cells, room)
            if not cells:
                break
            visible.appendleft(bar._replace(cells=cells))
            room -= cells
        return list(visible)

    def on_click(self, event: events.Click) -> None:
        offset, width = event.get_content_offset(self), self.content_size.width
        if offset is None or offset.y not in self._bar_lines or self._last is None:
            return
        right = width
        for bar in reversed(self._visible_bars(width)):
            right -= bar.cells
            if offset.x >= right:
                self.post_message(StepPointedAt(self._last.turn, bar.step))
                return

    def _fullness(self, width: int, height: int) -> str:
        """Return how much of the context is used, if there is room for that, or little context left."""
        last, whole = self._last, self.context_length
        if last is None or not whole:
            return ""
        used = last.timing.cache_length + 1 + len(last.token_ids)  # its input is one token
        if height < TALL and used < NEARLY_FULL * whole:
            return ""
        short = f"context {used:,} of {whole:,}"
        return longest(width, (f"{short} tokens · {percent(used / whole)}", short, f"{used:,}/{whole:,}"))

    def _cost(self) -> list[str]:
        """Return the time of the answer, or of its passes while it is being written, in versions from long to short.

        Passes are compared with plain ones by means over the answer: single passes vary too much.
        """
        if self._served is not None:
            return self._served.times()
        if (done := self._finished) is not None and done.decode_seconds and self.untimed == 0 and not self.no_times:
            short = f"{len(done.token_ids):,} tokens in {duration(done.decode_seconds)}"
            return [f"{short} · prompt {duration(done.prefill_seconds)}", short]
        if (last := self._last) is None:
            return []
        timing = last.timing
        mean = round(self._slots / self._steps)
        ended = self._finished is not None  # then one pass says little
        slots = f"mean pass {counted(mean, 'slot')}" if ended else counted(timing.slots, "slot")
        if self.no_times:
            return [slots if ended else f"pass of {slots}"]
        means = self._times.means(0.0)
        if means is None or not self._looks_ahead:
            if ended:
                return [slots]
            return [f"pass of {slots} · {timing.step_ms:.1f} ms", f"{slots} · {timing.step_ms:.1f} ms"]
        digits = 1 if means.plain_ms >= DIGITS_FROM_MS else 2
        pass_ms, plain = f"{means.pass_ms:.{digits}f} ms", f"{means.plain_ms:.{digits}f}"
        both = f"mean pass {pass_ms}, plain {plain} ms"
        brief = [both, f"mean {pass_ms}, plain {plain}"]
        if ended:
            return [f"{slots}, {pass_ms}; plain {plain} ms", *brief]
        return [f"this pass {slots} · {both}", f"{slots} · {both}", *brief]
