"""The speed of an answer as it is generated: passes and tokens, which do not depend on the machine, then times."""

from collections import deque

from rich.style import Style
from textual import events
from textual.reactive import reactive

from ladechat import protocol
from ladechat.widgets.cells import cell_len
from ladechat.widgets.formatting import counted, duration, percent
from ladechat.widgets.panels.panel import AnswerPanel, Row, longest
from ladechat.widgets.steps.answer_steps import StepPointedAt

BLOCKS = " ▁▂▃▄▅▆▇█"
RECENT_MS = 2000.0
"""Tokens per second are measured over the latest steps that took this long together."""
MOST_BARS = 512
SINGLE_FADED = 0.6
"""How far the bars of single tokens fade."""
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
TALL = 8
"""A panel of at least this many lines always has that line."""


class SpeedPanel(AnswerPanel):
    """Figures above, one bar per step below. Every figure is a total over the events of this answer.

    The estimated speedup is the time that as many plain passes would have taken, as measured by the engine, divided by
    the time of the steps. It is at most the tokens per pass, since no pass is cheaper than a plain one. Where it comes
    out clearly above that, something disturbed the machine, and no times are shown.
    """

    NAME = "speed"
    SHOWS = "Tokens a pass, passes saved, and how long it took; × compares with plain decoding."
    COMES = "F2 shows the panels."

    context_length: reactive[int | None] = reactive(None)
    """Maximum tokens of prompt and answer together; None until an engine has reported it."""
    slowed: reactive[bool] = reactive(False)
    """Whether passes are slowed down. A processor that idles between passes is slower, so times mean little."""

    def forget(self) -> None:
        self._bar_lines = range(0)
        """The lines of the panel in which the bars were drawn."""
        self._last: protocol.Step | None = None
        self._finished: protocol.TurnFinished | None = None
        self._bars: deque[tuple[int, int]] = deque(maxlen=MOST_BARS)
        self._recent: deque[tuple[int, float]] = deque()
        self._recent_tokens, self._recent_ms = 0, 0.0
        self._steps = self._tokens = self._compared = 0
        self._plain_ms = self._compared_ms = self._plain_step_ms = 0.0

    def show_step(self, step: protocol.Step) -> None:
        tokens, timing = len(step.token_ids), step.timing
        self._last = step
        self._finished = None
        self._bars.append((step.index, tokens))
        self._recent.append((tokens, timing.step_ms))
        self._recent_tokens, self._recent_ms = self._recent_tokens + tokens, self._recent_ms + timing.step_ms
        while self._recent_ms - self._recent[0][1] >= RECENT_MS:
            past_tokens, past_ms = self._recent.popleft()
            self._recent_tokens, self._recent_ms = self._recent_tokens - past_tokens, self._recent_ms - past_ms
        self._steps += 1
        self._tokens += tokens
        if timing.plain_ms:
            self._plain_ms += tokens * timing.plain_ms
            self._plain_step_ms += timing.plain_ms
            self._compared += 1
            self._compared_ms += timing.step_ms
        self.redraw()

    def show_finished(self, event: protocol.TurnFinished) -> None:
        """Show the time of the whole answer instead of that of its last pass; the other figures stay."""
        self._finished = event
        self.redraw()

    @property
    def _looks_ahead(self) -> bool:
        last = self._last
        return last is not None and not (last.draft is None and last.window is None and last.pool is None)

    @property
    def tokens_per_second(self) -> float | None:
        """The rate of the latest passes, or of the whole answer once it has ended."""
        if (done := self._finished) is not None and done.decode_seconds:
            return len(done.token_ids) / done.decode_seconds
        return self._recent_tokens / self._recent_ms * 1000 if self._recent_ms else None

    @property
    def measured(self) -> tuple[float, float] | None:
        """The speedup (the engine's estimate once the answer has ended) and the tokens per pass; None if unknown or not
        credible, and for plain decoding.
        """
        estimated, per_pass = self._estimated, self._tokens / self._steps if self._steps else 0.0
        speedup = None if estimated is None else protocol.credible_speedup(estimated, per_pass)
        return None if speedup is None or not self._looks_ahead else (speedup, per_pass)

    @property
    def _estimated(self) -> float | None:
        if self._finished is not None and self._finished.estimated_speedup is not None:
            return self._finished.estimated_speedup
        return self._plain_ms / self._compared_ms if self._compared_ms else None

    @property
    def no_times(self) -> list[str]:
        """Why times are not shown, in versions from long to short; [] if they are."""
        if self.slowed:
            return ["slow motion: no times"]
        busy = self._looks_ahead and self._estimated is not None and self.measured is None
        if busy and self._compared >= LEAST_COMPARED:
            return ["something else keeps this machine busy: no times", "machine busy: no times"]
        return []

    @property
    def price(self) -> float | None:
        """The mean cost of a pass of this answer, in plain passes."""
        return max(1.0, self._compared_ms / self._plain_step_ms) if self._plain_step_ms else None

    def verdict(self) -> list[str]:
        """Return the estimated speedup, with the reason if it is no gain, from long to short; [] for plain decoding."""
        measured, price = self.measured, self.price
        if self._looks_ahead and price is not None and self.no_times:
            return self.no_times
        if measured is None or price is None:
            return []
        speedup, per_pass = measured
        short = f"≈{speedup:.1f}× plain decoding"
        if speedup >= GAIN:
            return [f"{short} by the clock (estimated)", f"{short} (estimated)", short]
        why = "few drafts accepted" if per_pass < FEW_TOKENS else f"a pass takes {price:.1f}× plain"
        return [f"{short} by the clock: {why}", f"{short}: {why}", f"≈{speedup:.1f}×: {why}", f"≈{speedup:.1f}× plain"]

    def advice(self) -> list[str]:
        """Return what to try if there is no gain, in versions from long to short."""
        measured = self.measured
        if measured is None or measured[0] >= GAIN or self.no_times:
            return []
        if measured[1] < FEW_TOKENS:
            return ["try a text that repeats or copies: more drafts come true", "a text that repeats gains more"]
        if self._last is not None and self._last.window is not None:
            return ["try smaller W, N and G: fewer slots, a cheaper pass", "smaller W, N, G: a cheaper pass"]
        return ["on a GPU, more slots cost hardly more"]

    def explain(self) -> str:
        """Return the passes saved, on any machine, and the speedup measured on this one."""
        if self._last is None:
            return "Measures an answer from its first pass on."
        passes = f"{counted(self._steps, 'pass')} gave {counted(self._tokens, 'token')}"
        text = f"{passes}; plain decoding takes a pass for each. This is so on any machine."
        if self.measured and self.price is not None and not self.no_times:
            text += (
                f" Here a pass took as long as {self.price:.1f} plain ones, so the answer came about "
                f"{self.measured[0]:.1f} times as fast as by plain decoding."
            )
        return f"{text} Each bar is a pass, as high as it gave tokens; those of one token are grey."

    def rows(self, width: int, height: int) -> list[Row]:
        titles = ("speed · tokens a pass", "speed")
        if self._last is None:
            return self.only(width, titles, "Measured from the first pass on.")
        tall = height >= TALL
        notes = [longest(width, self.verdict()), longest(width, self.advice()) if tall else ""]
        notes += [self._fullness(width, height), longest(width, self._cost())]
        notes = [text for text in notes if text][: max(0, height - 3)]
        rows = [self.header(width, titles, self._passes(), Style(bold=True)), self._figures(width)]
        self._bar_lines = range(len(rows), max(len(rows), height - len(notes)))
        rows += self._chart(width, len(self._bar_lines))
        return [*rows, *([(text, self.muted)] for text in notes)]

    def _passes(self) -> list[str]:
        """Return what does not depend on the machine, passes and tokens, in versions from long to short."""
        passes = counted(self._steps, "pass")
        if not self._looks_ahead and self._tokens > self._steps:  # the figures include those of the decoder before it
            return [f"plain now · {passes} for {self._tokens:,}", f"{passes} for {self._tokens:,}"]
        if not self._looks_ahead:
            return ["plain decoding"]
        if self._tokens > self._steps:
            return [f"{passes} instead of {self._tokens:,}", f"{passes} for {self._tokens:,}"]
        return [f"{passes} for {counted(self._tokens, 'token')}", passes]

    def _figures(self, width: int) -> Row:
        rate = self.tokens_per_second
        figures = [
            (f"{self._tokens / self._steps:.2f}" if self._steps else "–", " tokens a pass"),
            ("–" if rate is None else f"{rate:.1f}" if rate < 100 else f"{rate:.0f}", " tok/s"),
        ][: 1 if self.no_times else 2]
        row: Row = []
        for number, unit in figures:
            gap = "   " if row else ""
            if cell_len("".join(text for text, _ in row) + gap + number + unit) <= width:
                row += [(gap, Style()), (number, Style(bold=True)), (unit, self.muted)]
        return row

    def _chart(self, width: int, height: int) -> list[Row]:
        """Return one column per step, the newest at the right; the scale goes from 1 to N, or the longest step."""
        if height <= 0 or self._last is None:
            return []
        visible = self._visible_bars(width)
        top = max(2, *(tokens for _, tokens in visible), len(self._last.window.rows) + 1 if self._last.window else 0)
        scale = [f"{top:>2} ", *["   "] * (height - 2), " 1 "] if height > 1 else [f"{top:>2} "]
        styles = [
            Style(color=self.palette.style_of_step(index, tokens).color) if tokens > 1 else self.faded(SINGLE_FADED)
            for index, tokens in visible
        ]
        eighths = [max(1, round(tokens / top * height * 8)) for _, tokens in visible]
        blank = (" " * (width - SCALE_CELLS - len(visible)), Style())
        return [
            [
                (label, self.muted),
                blank,
                *(
                    (BLOCKS[min(max(high - 8 * (height - 1 - line), 0), 8)], style)
                    for high, style in zip(eighths, styles, strict=True)
                ),
            ]
            for line, label in enumerate(scale)
        ]

    def _visible_bars(self, width: int) -> list[tuple[int, int]]:
        """Return the bars that fit: for each, the index of its step, and its tokens."""
        return list(self._bars)[-max(1, width - SCALE_CELLS) :]

    def on_click(self, event: events.Click) -> None:
        """Post `StepPointedAt` when a bar is clicked."""
        offset, width = event.get_content_offset(self), self.content_size.width
        if offset is None or offset.y not in self._bar_lines or self._last is None:
            return
        visible = self._visible_bars(width)
        bar = offset.x - (width - len(visible))
        if bar >= 0:
            self.post_message(StepPointedAt(self._last.turn, visible[bar][0]))

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
        if (done := self._finished) is not None and not self.no_times:
            short = f"{len(done.token_ids):,} tokens in {duration(done.decode_seconds)}"
            return [f"{short} · prompt {duration(done.prefill_seconds)}", short]
        if (last := self._last) is None:
            return []
        timing = last.timing
        slots = counted(timing.slots, "slot")
        if self.no_times:
            return [f"pass of {slots}"]
        if not self._compared or not self._looks_ahead:
            return [f"pass of {slots} · {timing.step_ms:.1f} ms", f"{slots} · {timing.step_ms:.1f} ms"]
        mean, plain = self._compared_ms / self._compared, self._plain_step_ms / self._compared
        means = f"mean pass {mean:.1f} ms, plain {plain:.1f} ms"
        return [f"this pass {slots} · {means}", f"{slots} · {means}", means, f"mean {mean:.1f} ms, plain {plain:.1f}"]
