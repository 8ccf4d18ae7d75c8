"""Messages as lines of a scroll view, laid out for its width, and drawn when visible."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from time import monotonic
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset, Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from ladechat.widgets.cells import cell_len
from ladechat.widgets.flow import Ink, Line
from ladechat.widgets.later import call_later
from ladechat.widgets.strips import restyle, strip_of
from ladechat.widgets.transcript.block import INDENT, Blocks

MARGIN = 1
CACHED_STRIPS = 500
"""Limit on cached drawn lines: some screens of them, not all of a long conversation."""
PAGES = 2
"""Number of pages that are always laid out at once."""
PART_SECONDS = 0.005
"""Time slice for the layout of other messages, and the pause after it, in which keys are handled."""
ROWS_AROUND_MARK = 3
"""Lines that stay visible above the target of a jump (fewer in a low view), and below it where no move is needed."""
SECONDS_TO_REST = 0.1
"""Delay before the next try, while lines must stay where they are and messages above them wait."""


class MessageLines(ScrollView, can_focus=True):
    """Lines of messages. Each line is drawn when it becomes visible, and cached until it changes.

    When all messages change, as when an earlier conversation is opened, visible ones are laid out immediately, and the
    others in time slices, those below the view first. The view does not move meanwhile.
    """

    DEFAULT_CSS = """
    MessageLines { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; }
    MessageLines > .lines--selected { background: $foreground; color: $background; }
    MessageLines > .lines--below {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold;
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"lines--selected", "lines--below"}
    ALLOW_SELECT = True
    tight = False
    """Whether a view at the end leaves out the empty line below the last message."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._blocks = Blocks()
        self._strips: dict[int, Strip] = {}
        self._wrapped_width = 0
        self._next_part: asyncio.TimerHandle | None = None
        self._to_start = False
        self._found_at: Selection | None = None  # the last match of a search

    # --- for a subclass -----------------------------------------------------------------------------------------------

    @property
    def _shows_formatted(self) -> bool:
        """Whether answers are shown as formatted Markdown."""
        raise NotImplementedError

    @property
    def _may_follow(self) -> bool:
        """Whether a view at the end follows new lines."""
        raise NotImplementedError

    @property
    def _more_below(self) -> str:
        """The text of the last line while there is more below the view."""
        raise NotImplementedError

    def _style(self, ink: Ink) -> Style:
        raise NotImplementedError

    # --- lines --------------------------------------------------------------------------------------------------------

    @property
    def lines(self) -> list[Line]:
        """All lines, from the first message on."""
        self._lay_out_rest()
        return self._blocks.lines

    def found(self, text: str) -> Selection | None:
        """Return the last occurrence of a text in the last message; None if it is not visible there."""
        blocks = self._blocks
        said = blocks and blocks[-1].kind != "notice"
        return blocks[-1].find(text, blocks.last_start, -1) if said else None

    @property
    def message_in_view(self) -> int:
        """The number of the message at the top of the view; 0 without messages."""
        return self._blocks.place(self.scroll_offset.y)[0] if self._blocks else 0

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where a text was said: the number of the message, and that of the occurrence in it."""
        return [(number, nth) for number, block in enumerate(self._blocks) for nth in range(block.count(text))]

    def scroll_to_text(self, messages: range, text: str) -> None:
        """Scroll to the first of these messages that contains a text, and select its first occurrence; thoughts are
        left out.
        """
        said = (number for number in messages if self._blocks[number].kind != "thought")
        number = next((number for number in said if self._blocks[number].count(text)), None)
        if number is not None:
            self.show_place(number, 0, text)

    def show_place(self, number: int, occurrence: int, text: str) -> None:
        """Scroll to an occurrence of a text in a message, and select it; to the message if there is none.

        A message that waits is laid out first, then those below it, which do not move the view, then those above it.
        """
        blocks = self._blocks
        if not self._text_width:
            return
        self.anchor(False)
        if blocks[number].waits:
            self._lay_out_around(number)
        place = blocks[number].find(text, blocks.start(number), occurrence)
        if place is None and text and blocks[number].foldable:
            blocks[number].fold(False)
            blocks.count_anew()
            self._take_over_height()
            place = blocks[number].find(text, blocks.start(number), occurrence)
        y = blocks.start(number) if place is None or place.start is None else place.start.y
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if not top <= y < top + height - ROWS_AROUND_MARK:
            self._move_to(max(y - min(ROWS_AROUND_MARK, height // 5), 0))
        self._found_at = place
        self.screen.selections = {} if place is None else {self: place}
        if text and not blocks.gap and self.follows_end:  # a message's first line stays when the view gets lower
            self.anchor()
        self._continue()

    @property
    def place_in_view(self) -> tuple[int | None, int]:
        """The question or answer at the top of the view, by number, and its line there; None if the end is in view."""
        if self.follows_end:
            return None, 0
        number, line = self._blocks.place(self.scroll_offset.y)
        return sum(block.kind in ("user", "model") for block in self._blocks[:number]), line

    def scroll_to_line(self, number: int, line: int) -> None:
        """Scroll until a line of a question or an answer is at the top of the view."""
        if not self._text_width:
            self.call_after_refresh(self.scroll_to_line, number, line)
        elif (block := self.block_of(number)) is not None:
            self.anchor(False)
            self._lay_out_around(block)
            self._move_to(self._blocks.start(block) + line)
            self._continue()

    def block_of(self, message: int) -> int | None:
        """Return the block of a question or an answer, by number; None if there is none."""
        said = (number for number, block in enumerate(self._blocks) if block.kind in ("user", "model"))
        return next(islice(said, message, None), None)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text as it was written: without indentation, and without line breaks from wrapping."""
        if None in selection:
            self._lay_out_rest()
        return self._blocks.selected(selection), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    # --- layout -------------------------------------------------------------------------------------------------------

    @property
    def _text_width(self) -> int:
        """The width of texts in cells; 0 before the first layout."""
        return max(self._wrapped_width - INDENT - MARGIN, 1) if self._wrapped_width else 0

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._wrapped_width:
            self._wrapped_width = width
            self._lay_out_anew()

    def _lay_out_anew(self) -> None:
        """Lay out all messages again, visible ones immediately."""
        if not self._blocks or not self._text_width:
            return
        if self.follows_end:
            self._lay_out_end()
        else:
            seen, place = self._blocks.place(self.scroll_offset.y)
            self._lay_out_around(seen)
            self._move_to(self._blocks.start(seen) + place)
        self._continue()

    def _lay_out(self, numbers: Iterable[int], enough: Callable[[int], bool]) -> int:
        """Lay out some messages in this order until there are `enough` lines; return how many lines they have."""
        return self._blocks.lay_out(numbers, self._text_width, self._shows_formatted, enough)

    def _lay_out_end(self) -> None:
        """Lay out the last pages, and scroll to the end."""
        self._lay_out_around(len(self._blocks), pages_above=PAGES)
        self._move_to(self._blocks.height)

    def _lay_out_around(self, number: int, pages_above: int = 1) -> None:
        """Lay out a message, with some pages below it and one above; the others wait."""
        height = self.size.height
        self._blocks.wait()
        self._lay_out(range(number, len(self._blocks)), lambda lines: lines >= PAGES * height)
        self._lay_out(range(number - 1, -1, -1), lambda lines: lines >= pages_above * height)
        self._take_over_height()

    def _take_over_height(self) -> None:
        """Redraw all lines, and update the scroll height."""
        self._redraw()
        self.virtual_size = Size(self._wrapped_width, self._blocks.height)

    def _lay_out_part(self) -> None:
        """Lay out some waiting messages: those between others in order, then those at the start in reverse order."""
        self._next_part = None
        until = monotonic() + PART_SECONDS
        if self._gap_is_below or not (self.laid_out or self._lines_must_stay):
            self._lay_out_more(lambda lines: lines > 0 and monotonic() >= until)
        self._continue()

    def _lay_out_rest(self) -> None:
        while self._text_width and not self.laid_out:
            self._lay_out_more(lambda _: False)

    def _lay_out_more(self, enough: Callable[[int], bool]) -> None:
        """Lay out messages that wait between others, or else those that wait before all others. What is in view stays
        there, unless the user scrolls to the start.
        """
        blocks, top, below = self._blocks, self.scroll_offset.y, self._gap_is_below
        lines = self._lay_out(blocks.gap or range(blocks.waiting - 1, -1, -1), enough)
        self._redraw()
        self._grow()
        if below:
            return
        self._to_start = self._to_start and not top
        if not self._to_start:
            self._move_to(top + lines)
        if self._found_at is not None and self.text_selection == self._found_at:
            down = Offset(0, lines)
            self._found_at = Selection(*(place if place is None else place + down for place in self._found_at))
            self.screen.selections = {self: self._found_at}

    @property
    def _gap_is_below(self) -> bool:
        """Whether the waiting messages in the middle are below the top of the view, where they move no visible line.
        Messages that were added behind them may be in view.
        """
        gap = self._blocks.gap
        return bool(gap) and self._blocks.start(gap.start) > self.scroll_offset.y

    @property
    def _lines_must_stay(self) -> bool:
        """Whether something relies on line numbers now: a selection by the user, or scrolling in progress."""
        scrolls = self.app.animator.is_being_animated(self, "scroll_y") or self.is_vertical_scrollbar_grabbed
        return scrolls or self.text_selection not in (None, self._found_at)

    def _continue(self) -> None:
        """Schedule the next part of the layout, if messages wait."""
        if not self.laid_out:
            if self._next_part is None:
                seconds = SECONDS_TO_REST if self._lines_must_stay else PART_SECONDS
                self._next_part = call_later(self, seconds, self._lay_out_part)
        else:
            self._to_start = False

    @property
    def laid_out(self) -> bool:
        return not self._blocks.waiting and not self._blocks.gap

    # --- scrolling ----------------------------------------------------------------------------------------------------

    @property
    def max_scroll_y(self) -> int:
        """The number of the top line of a view at the end."""
        return max(super().max_scroll_y - self.tight, 0)

    @property
    def follows_end(self) -> bool:
        """Whether the last line is in view."""
        return self.scroll_offset.y >= self.max_scroll_y - 1 and not self._blocks.gap

    def anchor(self, anchor: bool = True) -> None:
        """Follow the end, laying it out if necessary, or stop following it."""
        if anchor and self._blocks.gap:
            self._lay_out_end()
            self._continue()
        super().anchor(anchor)

    def action_scroll_home(self) -> None:
        """Scroll to the first message, also if it is not laid out yet."""
        super().action_scroll_home()
        self._to_start = bool(self._blocks.waiting)

    def _move_to(self, y: int) -> None:
        """Scroll to line `y` at the top, or to the end, without animation."""
        self.scroll_y = self.scroll_target_y = y

    def _update_last(self, place: int = 0) -> None:
        """Redraw the last message from its line `place` on, and update the scroll height."""
        # Scrolling down beyond the end releases the anchor too. A target above the end means that a scroll has just
        # begun.
        at_end = self.follows_end and self.is_vertical_scroll_end and self.scroll_target_y >= self.max_scroll_y
        start, height = self._blocks.last_start + place, self.virtual_size.height
        for y in range(start, height):
            self._strips.pop(y, None)
        if self._blocks.height == height:  # nothing scrolls, and the mark at the bottom stays as it is
            self.refresh_lines(start, height - start)
        else:
            self._grow()
            self.refresh()
        if at_end and not self.is_vertical_scrollbar_grabbed and self._may_follow:
            self.anchor()

    def _grow(self) -> None:
        """Update the number of lines. If there is a scrollbar already, this needs no new layout of the screen."""
        size, room = Size(self._wrapped_width, self._blocks.height), self.container_size.height
        if size.height >= self.virtual_size.height > room:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
        else:
            self.virtual_size = size

    # --- drawing ------------------------------------------------------------------------------------------------------

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
            style = self.get_component_rich_style("lines--below")
            shown, pad = self._more_below[:width], self.rich_style
            left = (width - cell_len(shown)) // 2
            return strip_of([Segment(" " * left, pad), Segment(shown, style)], width, pad)
        place = self.scroll_offset.y + y
        if place >= self._blocks.height:
            return Strip.blank(width, self.rich_style)
        selection = self.text_selection
        if selection is not None:
            return self._strip(place, width, selection)
        if place not in self._strips:
            if len(self._strips) == CACHED_STRIPS:
                self._strips.clear()
            self._strips[place] = self._strip(place, width, None)
        return self._strips[place]

    def _strip(self, place: int, width: int, selection: Selection | None) -> Strip:
        base = self.rich_style
        number, index = self._blocks.place(place)
        line = self._blocks[number].lines[index]
        runs = (Segment(text, base + self._style(ink)) for text, ink in line.runs)
        segments = list(Segment.simplify(runs))
        span = selection.get_span(place) if selection else None
        if span is not None:
            start, end = span
            chosen = self.get_component_rich_style("lines--selected")
            segments = restyle(segments, start, len(line.text) if end == -1 else end, chosen)
        return strip_of(segments, width, base).apply_offsets(0, place)
