"""One message: long questions and thoughts are folded, an answer may be formatted as Markdown, a text can be found."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal

from msgspec.structs import replace
from textual.geometry import Offset
from textual.selection import Selection

from ladechat.widgets.cells import folded, printable
from ladechat.widgets.flow import PLAIN, Flow, Ink, Line, Run, safe
from ladechat.widgets.formatting import counted
from ladechat.widgets.transcript.markdown import Formatted

INDENT = 2
INDENTED: Run = (" " * INDENT, PLAIN)
LINES_BEFORE_FOLDING = 10
"""A question of more lines is folded to `FOLDED_LINES`."""
FOLDED_LINES = 4
FOLD_KEY = "Ctrl+N"

Kind = Literal["user", "model", "notice", "thought"]
"""A thought is reasoning before an answer, which is no part of it."""


class Block:
    """One message, or one notice: its text, wrapped for the current width.

    Args:
        width: in cells; 0 defers the layout to `lay_out`.
        formatted: whether an answer is formatted.
        fold_key: the user's key that folds.

    Attributes:
        written: the raw text.
        folded: whether a long question shows its first lines only, and thoughts, while they come, their last ones.
        lines: the lines on the screen: the name, the indented text, and an empty line; empty until the message is laid
            out.
        sums_up: whether it is a notice with the figures of an answer.
        length: of thoughts, as text: "12 tokens in 0.8 s"; "" for other messages.
        done: whether nothing more is thought.
    """

    def __init__(self, kind: Kind, name: str, width: int, *, formatted: bool = False, fold_key: str = FOLD_KEY) -> None:
        self.kind, self._fold_key = kind, fold_key
        self.name = printable(name) if name else ""
        self._head = Line(((self.name, Ink("user" if kind == "user" else "label")),))
        self.written = ""
        self.folded = kind in ("user", "thought")
        self.sums_up = self.done = False
        self.length = ""
        self._parts: list[Run] = []
        self._width = width
        self._flow = Flow(width)
        self._formatted = Formatted(width) if formatted and kind == "model" and width else None
        self.lines: list[Line] = []
        if width:
            self._lay_out()

    @property
    def waits(self) -> bool:
        """Whether the message is not laid out yet: it has no lines until `lay_out` is called."""
        return not self.lines

    def wait(self) -> None:
        """Drop the lines until `lay_out`."""
        self.lines = []

    def lay_out(self, width: int, formatted: bool) -> None:
        """Lay out the message for a width in cells, an answer formatted as Markdown or as raw text."""
        if width != self._width:
            self._width, self._flow = width, Flow(width)
            self._flow.extend(self._parts)
            if self._formatted is not None:
                self._formatted.wrap(width)
        if not formatted or self.kind != "model":
            self._formatted = None
        else:
            self._formatted = self._formatted or Formatted(width)
            self._formatted.show(self.source)  # of which a part may have come while it waited
        self._lay_out()

    def _lay_out(self, first: int = 0) -> int:
        """Rebuild `lines` from the text's line `first` on, so that a growing answer is not laid out from its start.
        Return the index of the first line that may have changed.
        """
        if self.foldable and self.folded:
            first = 0
        head = [self._head] if self.name else []
        place = len(head) + first if first else 0
        text = self._text_lines()[first:]
        self.lines[place:] = [*head[place:], *(replace(line, runs=(INDENTED, *line.runs)) for line in text), Line()]
        return place

    def label(self, variant: int, variants: int, chosen: bool) -> None:
        """Show beside the name of a question which of its variants it is, with arrows, and whether it is chosen."""
        name, which = (self.name, Ink("marked" if chosen else "user")), (f"{variant} of {variants}", Ink("muted"))
        beside = (("  ‹ ", Ink("user", step=-1)), which, (" ›", Ink("user", step=1))) if variants > 1 else ()
        self._head = Line((name, *beside), copied=f"{self.name}\n")
        self.lines[:1] = [self._head] if self.lines else []

    def _text_lines(self) -> list[Line]:
        if self._formatted is not None:
            return self._formatted.lines
        lines = self._flow.lines
        if not self.foldable:
            return lines
        shown, hidden = lines[:FOLDED_LINES], lines[FOLDED_LINES:]
        hint = f"{f'… {self._length_in_words} in all' if self.folded else '↑ fold'} · click or {self._fold_key}"
        if self.kind == "thought":
            shown, hidden = ([], lines) if self.done else (lines[-FOLDED_LINES:], [])
            # It names only the key: users try a click anyway.
            hint = f"{'…' if self.folded else '↑'} {self.length} · {self._fold_key}"
        if not self.folded:
            shown, hidden = lines, []
        return [*shown, Line(((hint, Ink("muted")),), copied="".join(line.text + line.joint for line in hidden))]

    @property
    def _length_in_words(self) -> str:
        """The length of a folded text, as the prompt showed it: in lines, or in characters for few, long lines."""
        text = self.written.strip()
        written_lines = text.count("\n") + 1
        return counted(written_lines, "line") if written_lines > FOLDED_LINES else counted(len(text), "character")

    @property
    def foldable(self) -> bool:
        """Whether this is a question long enough to be folded, or thoughts."""
        return self.kind == "thought" or (self.kind == "user" and len(self._flow.lines) > LINES_BEFORE_FOLDING)

    def end(self) -> None:
        """Fold thoughts to one line, unless they were unfolded: the answer begins."""
        self.done = True
        if not self.waits:
            self._lay_out()

    @property
    def has_steps(self) -> bool:
        """Whether the steps of its tokens are known."""
        return any(ink.kind == "step" for _, ink in self._parts)

    def has_step(self, turn: int, step: int) -> bool:
        return any((ink.turn, ink.step) == (turn, step) and ink.kind == "step" for _, ink in self._parts)

    def count(self, text: str) -> int:
        """Return how often a question or an answer contains a text; case and line breaks do not matter."""
        return 0 if self.kind == "notice" else folded(self.written).count(folded(text))

    def find(self, text: str, first: int, occurrence: int = 0) -> Selection | None:
        """Return an occurrence of a text below the name, also across wrapped lines: the first is 0, the last -1. Where
        fewer are shown than were written, as of markup, a later one is the last.

        Case does not matter, nor whether words are separated by spaces or line breaks. This message begins at line
        `first` of the conversation.
        """
        written, places, named = "", [], bool(self.name)
        for y, line in enumerate(self.lines[named:], start=first + named):
            indent = INDENT if line.text.startswith(" " * INDENT) else 0
            for x, character in enumerate(line.text[indent:] + line.joint, start=indent):
                searched = folded(character)  # may be longer than the character: ß is ss
                written += searched
                places += [Offset(x, y)] * len(searched)
        wanted = folded(text)
        found = [match.start() for match in re.finditer(re.escape(wanted), written)] if wanted else []
        if not found:
            return None
        start = found[min(occurrence, len(found) - 1)]
        return Selection(places[start], places[start + len(wanted) - 1] + Offset(1, 0))

    def append(self, parts: Sequence[Run]) -> int:
        """Append several texts. Leading white space is skipped, but for the indentation of a question.

        If the message is formatted, they appear after the next `format`. Return the index of the first line that may
        have changed.
        """
        coming: list[Run] = []
        for text, ink in parts:
            shown = text if self._parts or coming or self.kind == "user" else text.lstrip()
            if shown:
                coming.append((shown, ink))
        self.written += "".join(text for text, _ in parts)
        self._parts += coming
        if self.waits:
            self._width = 0
            return 0
        first = self._flow.extend(coming)
        return self._lay_out(first) if self._formatted is None else len(self.lines)

    @property
    def extent(self) -> tuple[int, int]:
        """The current length, for `cut`: number of parts, and of raw characters."""
        return len(self._parts), len(self.written)

    def cut(self, extent: tuple[int, int]) -> None:
        """Remove what was added after the message had this extent."""
        if extent == self.extent:
            return
        parts, characters = extent
        del self._parts[parts:]
        self.written = self.written[:characters]
        self._lay_out_from_nothing()

    def recolour(self, inks: Mapping[Ink, Ink]) -> None:
        """Replace inks. The text stays."""
        self._parts = [(text, inks.get(ink, ink)) for text, ink in self._parts]
        self._lay_out_from_nothing()

    def _lay_out_from_nothing(self) -> None:
        width, self._width, formatted, self._formatted = self._width, 0, self._formatted is not None, None
        if not self.waits:
            self.lay_out(width, formatted)

    def fold(self, folded: bool) -> None:
        """Fold a long question to its first lines, or thoughts, or unfold them."""
        self.folded = folded
        if not self.waits:
            self._lay_out()

    @property
    def source(self) -> str:
        """The printable source of the formatted lines."""
        return safe(self.written.lstrip())

    def format(self) -> None:
        """Format an answer again with all text received so far, if it is shown formatted."""
        if self._formatted is not None:
            self._formatted.show(self.source)
            self._lay_out()

    def selected(self, selection: Selection, first: int) -> str:
        """Return the raw text of a selection, where this message begins at line `first` of the conversation.

        Formatted lines stand for all that was written from the first of them to the last, including fences.
        """
        spans = [(line, selection.get_span(place)) for place, line in enumerate(self.lines, start=first)]
        chosen = [(line, *span) for line, span in spans if span is not None]
        formatted = [
            line.origin.span(start - INDENT, (len(line.text) if end == -1 else end) - INDENT)
            for line, start, end in chosen
            if line.origin is not None
        ]
        if not formatted:
            return "".join(_plain(*one) for one in chosen)
        before = next(number for number, (line, _, _) in enumerate(chosen) if line.origin is not None)
        beyond = before + len(formatted)
        source = self.source.rstrip()
        start, end = 0 if before else formatted[0][0], len(source) if beyond < len(chosen) else formatted[-1][1]
        middle = source[start:end] + ("\n" if chosen[beyond - 1][2] == -1 else "")
        return "".join([*(_plain(*one) for one in chosen[:before]), middle, *(_plain(*one) for one in chosen[beyond:])])


def _plain(line: Line, start: int, end: int) -> str:
    if line.copied is not None:
        return line.copied
    text = line.text
    shift = INDENT if text.startswith(" " * INDENT) else 0
    return text[max(start, shift) : len(text) if end == -1 else end] + (line.joint if end == -1 else "")


class Blocks(list[Block]):
    """The messages in order, one below the other, and where each begins.

    A message that is not laid out has no lines. Each knows whether it is; this class only counts their lines. After a
    change of any but the last message, `count_anew` must be called.

    Attributes:
        waiting: number of messages at the start that are not laid out yet.
        gap: messages in the middle that are not laid out either, after a jump to an earlier message.
    """

    def __init__(self) -> None:
        super().__init__()
        self._starts: list[int] = []
        self.waiting = 0
        self.gap = range(0)

    @property
    def last_start(self) -> int:
        """The number of the last message's first line; 0 without messages."""
        return self._starts[-1] if self._starts else 0

    @property
    def height(self) -> int:
        return self.last_start + len(self[-1].lines) if self else 0

    @property
    def lines(self) -> list[Line]:
        return [line for block in self for line in block.lines]

    def place(self, y: int) -> tuple[int, int]:
        """Return the number of the message at line `y`, and the line's index in it; there must be a message."""
        number = bisect_right(self._starts, y) - 1
        return number, y - self._starts[number]

    def start(self, number: int) -> int:
        return self._starts[number]

    def add(self, block: Block) -> None:
        """Add a message. It waits only if all others do."""
        self._starts.append(self.height)
        self.append(block)
        if block.waits:
            self.waiting = len(self)

    def keep(self, count: int) -> None:
        del self[count:]
        self.count_anew()

    def wait(self) -> None:
        """Make all messages wait."""
        for block in self:
            block.wait()
        self._starts, self.waiting, self.gap = [0] * len(self), len(self), range(0)

    def lay_out(self, numbers: Iterable[int], width: int, formatted: bool, enough: Callable[[int], bool]) -> int:
        """Lay out messages in this order; return how many lines they have. `enough` is called with the number of lines
        so far before each message; True leaves the others for another call.
        """
        lines = 0
        for number in numbers:
            if enough(lines):
                break
            self[number].lay_out(width, formatted)
            lines += len(self[number].lines)
        if lines:
            self.count_anew()
        return lines

    def count_anew(self) -> None:
        sizes = [len(block.lines) for block in self]
        *self._starts, _ = accumulate(sizes, initial=0)
        end = len(sizes)
        self.waiting = next((number for number, size in enumerate(sizes) if size), end)
        first = next((number for number in range(self.waiting, end) if not sizes[number]), end)
        self.gap = range(first, next((number for number in range(first, end) if sizes[number]), end))

    def selected(self, selection: Selection) -> str:
        """Return the raw text of a selection."""
        return "".join(block.selected(selection, start) for start, block in zip(self._starts, self, strict=True))
