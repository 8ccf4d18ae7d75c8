"""The conversation, each token in the colour of the step that emitted it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from time import monotonic
from typing import ClassVar, Literal

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from ladechat import protocol
from ladechat.palette import MARKUP, Palette
from ladechat.widgets.cells import cell_len, printable
from ladechat.widgets.flow import PLAIN, Flow, Ink, Line, safe
from ladechat.widgets.later import call_later
from ladechat.widgets.markdown import Formatted
from ladechat.widgets.strips import strip_of

INDENT = 2
MARGIN = 1
WIDTH_BEFORE_LAYOUT = 80
"""What a conversation that is there before its first layout is wrapped to: one cell a line would take long."""
LINES_BEFORE_FOLDING = 10
"""A question of more lines is folded to `FOLDED_LINES`."""
FOLDED_LINES = 4
HOW_TO_FOLD = "click or Ctrl+N"
FORMATTING_SECONDS = 0.25
"""An answer that is being written is formatted anew at most this often."""
SHARE_FOR_FORMATTING = 0.2
"""Of the time, at most: a block that takes long to format is formatted less often."""
NEW_BELOW = " ↓ more below · End "

Kind = Literal["user", "model", "notice"]


class Block:
    """One message, or one notice: its text, wrapped for the present width.

    Attributes:
        written: its text as it was given.
        folded: whether a long question shows its first lines only.
    """

    def __init__(self, kind: Kind, name: str, width: int) -> None:
        self.kind = kind
        self.name = printable(name) if name else ""
        self.written = ""
        self.folded = kind == "user"
        self._parts: list[tuple[str, Ink]] = []
        self._flow = Flow(width)
        self._formatted: Formatted | None = None

    @property
    def lines(self) -> list[Line]:
        """The name, the text indented below it, and an empty line."""
        head = [Line([(self.name, Ink("user" if self.kind == "user" else "label"))])] if self.name else []
        return [*head, *(_indented(line) for line in self._text_lines()), Line()]

    def _text_lines(self) -> list[Line]:
        if self._formatted is not None:
            return self._formatted.lines
        lines = self._flow.lines
        if not self.foldable:
            return lines
        hidden = lines[FOLDED_LINES:]
        if not self.folded:
            return [*lines, Line([(f"↑ fold · {HOW_TO_FOLD}", Ink("muted"))], copied="")]
        more = f"… {len(hidden)} more lines · {HOW_TO_FOLD}"
        return [*lines[:FOLDED_LINES], Line([(more, Ink("muted"))], copied="".join(map(_copied, hidden)))]

    @property
    def foldable(self) -> bool:
        """Is it a question so long that it is folded?"""
        return self.kind == "user" and len(self._flow.lines) > LINES_BEFORE_FOLDING

    def append(self, text: str, ink: Ink) -> None:
        """Add text at the end. A message begins with its first visible character."""
        self.written += text
        if not any(part for part, _ in self._parts):
            text = text.lstrip()
        if text:
            self._parts.append((text, ink))
            self._flow.append(text, ink)

    def wrap(self, width: int) -> None:
        """Wrap everything anew."""
        self._flow = Flow(width)
        for text, ink in self._parts:
            self._flow.append(text, ink)
        if self._formatted is not None:
            self._formatted.wrap(width)

    @property
    def source(self) -> str:
        """What formatted lines stand for."""
        return safe(self.written.lstrip())

    def show_formatted(self, formatted: bool) -> None:
        """Show an answer formatted, with all that has come by now, or as it was written."""
        if not formatted or self.kind != "model":
            self._formatted = None
            return
        if self._formatted is None:
            self._formatted = Formatted(self._flow.width)
        self._formatted.show(self.source)


def _indented(line: Line) -> Line:
    return replace(line, runs=[(" " * INDENT, PLAIN), *line.runs])


def _copied(line: Line) -> str:
    return line.text + line.joint


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
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "transcript--label",
        "transcript--user",
        "transcript--muted",
        "transcript--mark",
        "transcript--comment",
        "transcript--alert",
        "transcript--selected",
        "transcript--below",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("end", "scroll_to_end", "To the end", show=False, id="transcript.end"),
    ]
    ALLOW_SELECT = True

    palette: reactive[Palette] = reactive(Palette)
    formatted: reactive[bool] = reactive(False)
    """Whether answers are shown as formatted Markdown, or as they were written, in the colours of steps."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._formatting: asyncio.TimerHandle | None = None
        self._format_at = 0.0
        self._blocks: list[Block] = []
        self._lines: list[Line] = []
        self._last_start = 0
        self._strips: dict[int, Strip] = {}
        self._wrapped_width = 0

    def on_mount(self) -> None:
        self.anchor()

    # --- content ------------------------------------------------------------------------------------------------------

    def start(self, kind: Kind, name: str = "") -> None:
        """Begin a message or a notice, which what comes next is added to."""
        if not self._wrapped_width:  # mounted in the middle of a session, a widget may have its size without being told
            self.on_resize()
        self._format_now()
        self._blocks.append(Block(kind, name, self._text_width))
        self._last_start = len(self._lines)
        self._update_last(self._last_start)

    def add(self, text: str, ink: Ink = PLAIN) -> None:
        """Add text to the last message."""
        block = self._blocks[-1]
        block.append(text, ink)
        block.show_formatted(self.formatted)
        self._update_last(self._last_start)

    def add_steps(self, steps: list[protocol.Step]) -> None:
        """Add the tokens of steps to the answer, in one go. It goes on below a notice that came in between.

        An answer whose beginning is missing from a recording begins with them.
        """
        if not self._blocks or self._blocks[-1].kind != "model":
            self.start("model")
        for step in steps:
            ink = Ink("step", step.index, len(step.token_ids))
            self._blocks[-1].append("".join(step.pieces), ink)
        if self.formatted:
            self._format_soon()
        else:
            self._update_last(self._last_start)

    def last_answer(self) -> str:
        """The last answer as the model wrote it, without notices in the middle of it; "" if there is none."""
        parts: list[str] = []
        for block in reversed(self._blocks):
            if block.kind == "user" and parts:
                break
            if block.kind == "model" and block.written:
                parts.insert(0, block.written)
        return "".join(parts).strip()

    def notice(self, text: str, kind: Literal["muted", "alert"] = "muted") -> None:
        """Add a notice of the program."""
        self.start("notice")
        self.add(text, Ink(kind))

    def clear(self) -> None:
        """Forget everything."""
        self._cancel_formatting()
        self._blocks.clear()
        self._lines.clear()
        self._last_start = 0
        self._update_last(0)

    @property
    def blocks(self) -> int:
        """How many messages and notices there are."""
        return len(self._blocks)

    def keep(self, blocks: int) -> None:
        """Forget all but the first `blocks` messages and notices."""
        self._cancel_formatting()
        going = sum(len(block.lines) for block in self._blocks[blocks:])
        del self._blocks[blocks:]
        kept = len(self._lines) - going
        self._last_start = kept - len(self._blocks[-1].lines) if self._blocks else 0
        self._update_last(self._last_start)

    def _update_last(self, start: int) -> None:
        # Scrolling down beyond the end releases the anchor too. A target above the end is a scroll that has just begun.
        at_end = self.is_vertical_scroll_end and self.scroll_target_y >= self.max_scroll_y
        if at_end and not self.is_vertical_scrollbar_grabbed:
            self.anchor()
        old, new = self._lines[start:], self._blocks[-1].lines if self._blocks else []
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        self._lines[start + same :] = new[same:]
        for y in [y for y in self._strips if y >= start + same]:
            del self._strips[y]
        self.virtual_size = Size(self._wrapped_width, len(self._lines))
        self.refresh()

    # --- formatting and folding ---------------------------------------------------------------------------------------

    def watch_formatted(self) -> None:
        self._cancel_formatting()
        for block in self._blocks:
            block.show_formatted(self.formatted)
        self._relay()

    def _format_soon(self) -> None:
        """Format the last answer, at once or when that is due."""
        wait = self._format_at - monotonic()
        if wait <= 0:
            self._format()
        elif self._formatting is None:
            self._formatting = call_later(self, wait, self._format)

    def _format(self) -> None:
        self._cancel_formatting()
        started = monotonic()
        self._blocks[-1].show_formatted(self.formatted)
        self._update_last(self._last_start)
        now = monotonic()
        self._format_at = now + max(FORMATTING_SECONDS, (now - started) / SHARE_FOR_FORMATTING)

    def _format_now(self) -> None:
        """Format the last answer if it waits for that."""
        if self._formatting is not None:
            self._format()

    def _cancel_formatting(self) -> None:
        if self._formatting is not None:
            self._formatting.cancel()
            self._formatting = None

    def action_fold(self) -> None:
        """Open all long questions, or fold them if they are open."""
        self._fold([block for block in self._blocks if block.foldable])

    def _fold(self, blocks: list[Block]) -> None:
        folded = not any(block.folded for block in blocks)
        for block in blocks:
            block.folded = folded
        if blocks:
            self._relay()

    @on(events.Click)
    def _open_where_clicked(self, event: events.Click) -> None:
        place = event.get_content_offset_capture(self).y + self.scroll_offset.y
        for block in self._blocks:
            count = len(block.lines)
            if place < count:
                if block.foldable and place == count - 2:  # before the empty line
                    self._fold([block])
                return
            place -= count

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
        """Put the lines of all messages together anew."""
        self._lines = [line for block in self._blocks for line in block.lines]
        self._last_start = len(self._lines) - len(self._blocks[-1].lines) if self._blocks else 0
        self._redraw()
        self.virtual_size = Size(self._wrapped_width, len(self._lines))

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

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == self.size.height - 1 and not self.follows_end:
            style = self.get_component_rich_style("transcript--below")
            shown = NEW_BELOW[:width]
            left = (width - cell_len(shown)) // 2
            pad = self.rich_style
            return strip_of([Segment(" " * left, pad), Segment(shown, style)], width, pad)
        place = self.scroll_offset.y + y
        if place >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        selection = self.text_selection
        if selection is not None:
            return self._strip(place, width, selection)
        if place not in self._strips:
            self._strips[place] = self._strip(place, width, None)
        return self._strips[place]

    def _strip(self, place: int, width: int, selection: Selection | None) -> Strip:
        base = self.rich_style
        segments = [Segment(text, base + self._style(ink)) for text, ink in self._lines[place].runs]
        span = selection.get_span(place) if selection else None
        if span is not None:
            start, end = span
            chosen = self.get_component_rich_style("transcript--selected")
            segments = _restyle(segments, start, len(self._lines[place].text) if end == -1 else end, chosen)
        return strip_of(segments, width, base).apply_offsets(0, place)

    def _style(self, ink: Ink) -> Style:
        if ink.kind == "step":
            return self.palette.step(ink.step, ink.tokens)
        if ink.kind in ("plain", "listing"):
            return Style()
        if ink.kind in MARKUP:
            return self.palette.markup(ink.kind)
        return self.get_component_rich_style(f"transcript--{ink.kind}")

    # --- selection ----------------------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text as it was written: without the indent, and without the line breaks that wrapping made."""
        parts: list[str] = []
        first = 0
        for block in self._blocks:
            spans: list[tuple[Line, int, int]] = []
            for place, line in enumerate(block.lines, start=first):
                span = selection.get_span(place)
                if span is not None:
                    spans.append((line, *span))
            first += len(block.lines)
            parts += _written(spans, block)
        return "".join(parts), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()


def _written(spans: list[tuple[Line, int, int]], block: Block) -> Iterator[str]:
    """What was selected of a message, in lines, as it was written; an end of −1 is that of the line.

    Formatted lines stand for all that was written from the first of them to the last, with the fences around.
    """
    formatted = [
        line.origin.span(start - INDENT, (len(line.text) if end == -1 else end) - INDENT)
        for line, start, end in spans
        if line.origin is not None
    ]
    before = next((number for number, (line, _, _) in enumerate(spans) if line.origin is not None), len(spans))
    beyond = before + len(formatted)
    for line, start, end in spans[:before]:
        yield _plain(line, start, end)
    if formatted:
        source = block.source.rstrip()
        start, end = 0 if before else formatted[0][0], len(source) if beyond < len(spans) else formatted[-1][1]
        yield source[start:end] + ("\n" if spans[beyond - 1][2] == -1 else "")
    for line, start, end in spans[beyond:]:
        yield _plain(line, start, end)


def _plain(line: Line, start: int, end: int) -> str:
    if line.copied is not None:
        return line.copied
    text = line.text
    shift = INDENT if text.startswith(" " * INDENT) else 0
    return text[max(start, shift) : len(text) if end == -1 else end] + (line.joint if end == -1 else "")


def _restyle(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """The segments, with characters `start` to `end` in the given style."""
    restyled: list[Segment] = []
    place = 0
    for text, own, _ in segments:
        for character in text:
            inside = start <= place < end
            restyled.append(Segment(character, (own or Style()) + style if inside else own))
            place += 1
    return list(Segment.simplify(restyled))
