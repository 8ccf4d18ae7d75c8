"""The widgets of a race: one lane for each decoder, and remarks below them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive

from ladechat.palette import Palette
from ladechat.protocol import Step
from ladechat.widgets.bars.seek_bar import DONE, HERE, TO_COME
from ladechat.widgets.cells import BLOCKS, cell_len, shorten
from ladechat.widgets.panels.panel import Panel, Row, longest, wrapped
from ladechat.widgets.transcript.transcript import Transcript

SEPARATOR = " · "
BAR = 8
"""Cells of the bar in a head of one row."""
GAP = 1
"""Cells between lanes, as in app.tcss."""
TALL = 4
"""Rows of a head that has its figures below each other; further rows are those of the bars."""
LEAST_PART = 0.1
"""A cell of which the passes fill less stays empty."""
SINGLE_FADED = 0.6
"""How far the bars of single tokens fade."""


@dataclass(frozen=True)
class Standing:
    """A decoder's state in the race, as text.

    Attributes:
        place: whether it leads, or its final place; this shows who is ahead even without colour.
        figures: tokens, passes, tokens per pass and seconds; none before the first step.
        fraction: progress of its bar, 0 to 1.
        bars: its passes; None while it is measured.
    """

    place: str = ""
    figures: tuple[str, ...] = ()
    fraction: float = 0.0
    bars: "PassBars | None" = None


@dataclass(frozen=True)
class PassBars:
    """The passes of a lane as bars, which together are as long as it took.

    Attributes:
        passes: for each pass its tokens, and its time in any unit.
        whole: the time of the longest lane, in the same unit: the whole width.
        most: the tokens of the highest bar of all lanes.
    """

    passes: tuple[tuple[int, float], ...]
    whole: float
    most: int

    @classmethod
    def of(cls, steps: Sequence[Step], timed: bool, whole: float, most: int) -> "PassBars":
        """Return the bars of these steps, as wide as their time or all of one width."""
        return cls(tuple((len(step.token_ids), step.timing.step_ms if timed else 1.0) for step in steps), whole, most)

    def cells(self, width: int) -> list[tuple[int, float]]:
        """Return for each cell from the left the index of the pass that has most of it, and the mean of their tokens by
        time: many passes may share a cell.
        """
        cells = [(0, 0.0, 0.0, 0.0) for _ in range(width)]  # pass, its part, part of all passes, tokens × part
        start = 0.0
        for index, (tokens, took) in enumerate(self.passes):
            end = min(start + took / self.whole * width, float(width)) if self.whole else start
            for cell in range(int(start), min(math.ceil(end), width)):
                part = min(end, cell + 1) - max(start, cell)
                which, largest, filled, sum_ = cells[cell]
                if part > largest:
                    which, largest = index, part
                cells[cell] = which, largest, filled + part, sum_ + tokens * part
            start = end
        return [(which, sum_ / filled) for which, _, filled, sum_ in cells if filled > LEAST_PART]


class LaneHead(Panel):
    """Name, place, figures, bars of the passes and progress of a lane; in one row if there is no room, without bars."""

    DEFAULT_CSS = """
    LaneHead > .lane-head--bar { color: $text-primary; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"lane-head--bar"}

    standing: reactive[Standing] = reactive(Standing)

    @dataclass
    class Sought(Message):
        """The user has clicked at a fraction (0 to 1) of the bar of a lane."""

        lane: "LaneView"
        fraction: float

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label
        self._bar = range(0)
        """The columns of the bar."""

    def watch_standing(self) -> None:
        self.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        standing, figures = self.standing, self.standing.figures
        if height >= TALL:
            self._bar = range(width)
            top = self.header(width, [self.label], [standing.place, ""], Style(bold=True))
            counts, rates = (SEPARATOR.join(part) for part in (figures[:2], figures[2:]))
            bars = self._bars(standing.bars, width, height - TALL)
            return [top, [(counts, Style())], [(rates, self.muted)], *bars, self._line(width)]
        name = f"{self.label} {standing.place}".rstrip()
        self._bar = range(width - BAR, width)  # of equal length in all lanes, for comparison
        room = self._bar.start - 1
        # Tokens per pass follow from the figures before them, so they are left out first.
        shorter = (figures, (*figures[:2], *figures[3:]), figures[:2], ())
        text = longest(room - cell_len(name), ["".join(f"{SEPARATOR}{one}" for one in part) for part in shorter])
        gap = " " * max(room - cell_len(name + text) + 1, 0)
        return [[(name, self.title_style), (text, self.muted), (gap, Style()), *self._line(BAR)]]

    def _bars(self, bars: PassBars | None, width: int, height: int) -> list[Row]:
        """Return the bars of the passes, each in the colour of its step, highest row first."""
        cells = bars.cells(width) if bars is not None else []
        rows: list[Row] = [[] for _ in range(height)]
        for index, tokens in cells:
            assert bars is not None
            colour = self.palette.style_of_step(index, bars.passes[index][0]).color
            style = self.faded(SINGLE_FADED) if colour is None else Style(color=colour)
            eighths = max(1, round(tokens / bars.most * height * 8))
            for row in range(height):
                rows[row].append((BLOCKS[min(max(eighths - 8 * (height - 1 - row), 0), 8)], style))
        return rows

    def _line(self, cells: int) -> Row:
        done = round(self.standing.fraction * (cells - 1))
        bar = self.get_component_rich_style("lane-head--bar")
        return [(DONE * done + HERE, bar), (TO_COME * (cells - 1 - done), self.muted)]

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None and offset.x in self._bar and offset.y == self.content_size.height - 1:
            assert isinstance(self.parent, LaneView)
            share = (offset.x - self._bar.start) / max(len(self._bar) - 1, 1)
            self.post_message(self.Sought(self.parent, share))


class LaneView(Vertical):
    """A head, with the decoder's name for users, and below it the answer up to the shown step."""

    DEFAULT_CSS = """
    LaneView { height: 1fr; width: 1fr; }
    LaneView LaneHead { height: 1; }
    """

    def __init__(self, label: str) -> None:
        super().__init__()
        self.head = LaneHead(label)
        self.transcript = Transcript()
        self.transcript.can_focus = False  # the race's clock handles the keys for scrolling
        self.transcript.tight = True  # a low terminal has one row for it
        self._shown: Sequence[Step] = ()

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.transcript

    def on_mount(self) -> None:
        self.watch(self.app, "palette", self._show_palette)

    def show_steps(self, steps: Sequence[Step]) -> None:
        """Show exactly these steps of the answer."""
        shown = len(self._shown)
        if len(steps) < shown:
            self.transcript.keep(0)
            shown = 0
        if new := list(steps[shown:]):
            self.transcript.add_steps(new)
        self._shown = steps

    def _show_palette(self, palette: Palette) -> None:
        self.head.palette = self.transcript.palette = palette


class Lanes(Container):
    """The lanes: side by side if there is room, with equal widths, so that equal texts are wrapped alike."""

    def on_resize(self) -> None:
        self.share_width()

    def share_width(self) -> None:
        """Give all lanes the same width; leftover cells stay empty."""
        lanes, beside = self.query_children(LaneView), self.screen.has_class("-wide")
        for lane in lanes:
            lane.styles.max_width = (self.content_size.width + GAP) // len(lanes) - GAP if beside else None


class Remarks(Panel):
    """Sentences, the first of them highlighted; wrapped, as many as fit."""

    sentences: reactive[tuple[str, ...]] = reactive((), layout=True)

    def say(self, *sentences: str) -> None:
        self.sentences = sentences

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.rows(width, 0))

    def rows(self, width: int, height: int) -> list[Row]:
        styles = chain([Style(bold=True)], repeat(self.muted))
        texts = (shorten(sentence, 4 * width) for sentence in self.sentences)
        return [row for text, style in zip(texts, styles, strict=False) for row in wrapped(text, width, style)]
