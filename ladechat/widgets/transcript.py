"""The conversation, each token in the colour of the step that emitted it."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from ladechat import protocol
from ladechat.palette import MARKUP, Palette
from ladechat.widgets.answer_steps import StepPointedAt
from ladechat.widgets.block import INDENT, Block, Kind, answers_in, folded_at
from ladechat.widgets.blocks import Blocks
from ladechat.widgets.cells import cell_len
from ladechat.widgets.find import last_said
from ladechat.widgets.flow import PLAIN, Ink, Line, ink_at
from ladechat.widgets.formatting import is_own
from ladechat.widgets.later import Seldom
from ladechat.widgets.strips import restyle, strip_of

MARGIN = 1
WIDTH_BEFORE_LAYOUT = 80
"""What a conversation that is there before its first layout is wrapped to: one cell a line would take long."""
FORMATTING_SECONDS = 0.25
"""An answer that is being written is formatted anew at most this often."""
SHARE_FOR_FORMATTING = 0.2
"""Of the time, at most: a block that takes long to format is formatted less often."""
NEW_BELOW = " ↓ more below · End "
BELOW_MARK = " ↓ more below "
"""While a step is marked, when the key means its last step."""
STRIPS_KEPT = 500
"""Lines whose drawing is kept: some screens of them, not all of a long conversation."""
ROWS_ABOVE_MARK = 3
"""Lines that stay in view above a step that is scrolled to."""


class Transcript(ScrollView, can_focus=True):
    """The whole conversation as lines of a scroll view: each is rendered when it is seen, and cached until it changes.

    It follows its end until the user scrolls up; then a mark at the bottom says that there is more.
    """

    DEFAULT_CSS = """
    Transcript { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1; }
    Transcript > .transcript--label { text-style: bold; color: $text-muted; }
    Transcript > .transcript--user { text-style: bold; color: $foreground; }
    Transcript > .transcript--muted { color: $text-muted; }
    Transcript > .transcript--mark { color: $text-muted; }
    Transcript > .transcript--comment { color: $text-muted; text-style: italic; }
    Transcript > .transcript--alert { color: $text-error; }
    Transcript > .transcript--selected { background: $foreground; color: $background; }
    Transcript > .transcript--below { background: $primary; color: $background; text-style: bold; }
    Transcript > .transcript--marked { background: $primary; color: $background; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"transcript--{part}"
        for part in ("label", "user", "muted", "mark", "comment", "alert", "selected", "below", "marked")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("end", "scroll_to_end", "To the end", show=False, id="transcript.end"),
    ]
    ALLOW_SELECT = True

    palette: reactive[Palette] = reactive(Palette)
    formatted: reactive[bool] = reactive(False)
    """Are answers shown as formatted Markdown? Else, and while a step is marked, in the colours of steps."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._formatting = Seldom(self, self._format, FORMATTING_SECONDS, SHARE_FOR_FORMATTING)
        self._blocks = Blocks()
        self._strips: dict[int, Strip] = {}
        self._wrapped_width = 0
        self._marked: tuple[int, int] | None = None
        self._followed = True

    def on_mount(self) -> None:
        self.anchor()

    # --- content ------------------------------------------------------------------------------------------------------

    def start(self, kind: Kind, name: str = "") -> None:
        """Begin a message or a notice, which what comes next is added to."""
        if not self._wrapped_width:  # mounted in the middle of a session, a widget may have its size without being told
            self.on_resize()
        self._formatting.at_once_if_waiting()
        self._blocks.add(Block(kind, name, self._text_width, formatted=self._shows_formatted))
        self._update_last()

    def add(self, text: str, ink: Ink = PLAIN) -> None:
        """Add text to the last message."""
        block = self._blocks.last
        place = block.append([(text, ink)])
        if self._shows_formatted:
            self._format()
        else:
            self._update_last(place)

    def add_steps(self, steps: list[protocol.Step]) -> None:
        """Add the tokens of steps to the answer, in one go. It goes on below a notice that came in between.

        An answer whose beginning is missing from a recording begins with them.
        """
        if not self._blocks or self._blocks.last.kind != "model":
            self.start("model")
        place = self._blocks.last.append(
            [
                (piece, Ink("step", step.turn, step.index, len(step.token_ids), token, is_own(step, token)))
                for step in steps
                for token, piece in enumerate(step.pieces)
            ]
        )
        if self._shows_formatted:
            self._formatting.soon()
        else:
            self._update_last(place)

    def answers(self) -> Iterator[str]:
        """The answers as the model wrote them, without notices in the middle of them; the last one first."""
        return answers_in(list(self._blocks))

    def notice(self, text: str, kind: Literal["muted", "alert"] = "muted") -> None:
        """Add a notice of the program."""
        self.start("notice")
        self.add(text, Ink(kind))

    def clear(self) -> None:
        """Forget everything."""
        self.keep(0)

    @property
    def blocks(self) -> int:
        """How many messages and notices there are."""
        return len(self._blocks)

    def keep(self, blocks: int) -> None:
        """Forget all but the first `blocks` messages and notices."""
        if blocks < len(self._blocks):
            self._formatting.cancel()  # the last block alone waits for it
            self._blocks.keep(blocks)
            self._update_last()

    @property
    def lines(self) -> list[Line]:
        """All lines, from the first message on."""
        return self._blocks.lines

    def _update_last(self, place: int = 0) -> None:
        """Draw the last message anew, from its line `place` on, and take over how many lines there are."""
        # Scrolling down beyond the end releases the anchor too. A target above the end is a scroll that has just begun.
        at_end = self.is_vertical_scroll_end and self.scroll_target_y >= self.max_scroll_y
        start, height = self._blocks.last_start + place, self.virtual_size.height
        for y in range(start, height):
            self._strips.pop(y, None)
        if self._blocks.height == height:  # nothing scrolls, and no mark comes or goes
            self.refresh_lines(start, height - start)
        else:
            self._grow()
            self.refresh()
        if at_end and not self.is_vertical_scrollbar_grabbed and (self._marked is None or self.is_anchored):
            self.anchor()

    def _grow(self) -> None:
        """Take over the number of lines. With a scrollbar there, more of them need no new layout of the screen."""
        size, room = Size(self._wrapped_width, self._blocks.height), self.container_size.height
        if size.height >= self.virtual_size.height > room:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
        else:
            self.virtual_size = size

    # --- formatting and folding ---------------------------------------------------------------------------------------

    @property
    def _shows_formatted(self) -> bool:
        return self.formatted and self._marked is None

    def watch_formatted(self) -> None:
        self._formatting.cancel()
        for block in self._blocks:
            block.show_formatted(self._shows_formatted)
        self._relay()

    def _format(self) -> None:
        self._blocks.last.show_formatted(self._shows_formatted)
        self._update_last()

    def action_fold(self) -> None:
        """Open all long questions, or fold them if they are open."""
        self._fold([block for block in self._blocks if block.foldable])

    def _fold(self, blocks: list[Block]) -> None:
        folded = not any(block.folded for block in blocks)
        for block in blocks:
            block.fold(folded)
        if blocks:
            self._relay()

    # --- geometry -----------------------------------------------------------------------------------------------------

    @property
    def _text_width(self) -> int:
        return max((self._wrapped_width or WIDTH_BEFORE_LAYOUT) - INDENT - MARGIN, 1)

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._wrapped_width:
            self._wrapped_width = width
            for block in self._blocks:
                block.wrap(self._text_width)
            self._relay()

    def _relay(self) -> None:
        """Count the lines of all messages anew."""
        self._blocks.count_anew()
        self._redraw()
        self.virtual_size = Size(self._wrapped_width, self._blocks.height)

    @property
    def follows_end(self) -> bool:
        """Is the last line in view?"""
        return self.scroll_offset.y >= self.max_scroll_y - 1

    def action_scroll_to_end(self) -> None:
        """Go to the end, and follow it again."""
        self.anchor()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def watch_palette(self) -> None:
        self._redraw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def _redraw(self) -> None:
        self._strips.clear()
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        if self.scrollable_content_region.width != self._wrapped_width:  # the Resize event may not have arrived yet
            self.on_resize()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == self.size.height - 1 and not self.follows_end:
            style = self.get_component_rich_style("transcript--below")
            shown = NEW_BELOW[:width] if self._marked is None else BELOW_MARK[:width]
            left = (width - cell_len(shown)) // 2
            pad = self.rich_style
            return strip_of([Segment(" " * left, pad), Segment(shown, style)], width, pad)
        place = self.scroll_offset.y + y
        if place >= self._blocks.height:
            return Strip.blank(width, self.rich_style)
        selection = self.text_selection
        if selection is not None:
            return self._strip(place, width, selection)
        if place not in self._strips:
            if len(self._strips) == STRIPS_KEPT:
                self._strips.clear()
            self._strips[place] = self._strip(place, width, None)
        return self._strips[place]

    def _strip(self, place: int, width: int, selection: Selection | None) -> Strip:
        base, line = self.rich_style, self._blocks.line(place)
        runs = (Segment(text, base + self._style(ink)) for text, ink in line.runs)
        segments = list(Segment.simplify(runs))
        span = selection.get_span(place) if selection else None
        if span is not None:
            start, end = span
            chosen = self.get_component_rich_style("transcript--selected")
            segments = restyle(segments, start, len(line.text) if end == -1 else end, chosen)
        return strip_of(segments, width, base).apply_offsets(0, place)

    def _style(self, ink: Ink) -> Style:
        if ink.kind == "step":
            style = self.palette.step(ink.step, ink.tokens, own=ink.own)
            if (ink.turn, ink.step) == self._marked:  # where terminals are too light for bold, the style is reversed
                marked = "marked" if self.palette.colour else "selected"
                style += self.get_component_rich_style(f"transcript--{marked}") + Style(reverse=False)
            return style
        if ink.kind in ("plain", "answer", "listing"):
            return Style()
        if ink.kind in MARKUP:
            return self.palette.markup(ink.kind)
        return self.get_component_rich_style(f"transcript--{ink.kind}")

    # --- steps --------------------------------------------------------------------------------------------------------

    def mark(self, turn: int, step: int) -> None:
        """Mark the tokens of a step, and bring them into view. What comes meanwhile does not scroll them away."""
        if self._marked is None:
            self._followed = self.follows_end
            self.anchor(False)
        self._mark((turn, step))
        place = self._blocks.last_where(self._shows_marked)
        top, height = self.scroll_offset.y, self.scrollable_content_region.height - 1
        if place is not None and not top <= place < top + height:
            self.scroll_to(y=max(place - ROWS_ABOVE_MARK, 0), animate=False, immediate=True)

    def unmark(self) -> None:
        """Mark nothing any more, and go on where the view was."""
        if self._marked is not None:
            self._mark(None)
            if self._followed:
                self.anchor()

    def _mark(self, step: tuple[int, int] | None) -> None:
        before, self._marked = self._marked, step
        if self.formatted and (before is None) != (step is None):
            self.watch_formatted()
        self._redraw()

    def _shows_marked(self, line: Line) -> bool:
        return any(ink.kind == "step" and (ink.turn, ink.step) == self._marked for _, ink in line.runs)

    def on_click(self, event: events.Click) -> None:
        """A click on a token points at its step, one below a long question opens or folds it.

        Behind a drag that selected text it means nothing else.
        """
        offset = event.get_content_offset(self)
        if offset is None or self.text_selection is not None:
            return
        y = self.scroll_offset.y + offset.y
        if (folded := folded_at(self._blocks, y)) is not None:
            self._fold([folded])
            return
        ink = ink_at(self._blocks.line(y), offset.x) if y < self._blocks.height else PLAIN
        if ink.kind == "step":
            self.post_message(StepPointedAt(ink.turn, ink.step, ink.token))
        elif ink.kind == "answer":
            self.post_message(StepPointedAt(None, 0, 0))

    # --- selection ----------------------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it was written: without the indent, and without the line breaks that wrapping made."""
        return self._blocks.selected(selection), "\n"

    def found(self, text: str, *, anywhere: bool = False) -> Selection | None:
        """The last place of a text in the last message, or in any question or answer; None where it is not shown."""
        return last_said(list(self._blocks)[0 if anywhere else -1 :], self._blocks.height, text)

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()
