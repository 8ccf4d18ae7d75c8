"""One message of the conversation: folded if it is a long question, formatted if it is an answer and that is wanted."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from textual.selection import Selection

from ladechat.widgets.cells import printable
from ladechat.widgets.flow import PLAIN, Flow, Ink, Line, safe
from ladechat.widgets.markdown import Formatted

INDENT = 2
LINES_BEFORE_FOLDING = 10
"""A question of more lines is folded to `FOLDED_LINES`."""
FOLDED_LINES = 4
HOW_TO_FOLD = "click or Ctrl+N"

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

    def append(self, parts: Iterable[tuple[str, Ink]]) -> None:
        """Add texts at the end, in one go. A message begins with its first visible character."""
        coming: list[tuple[str, Ink]] = []
        for text, ink in parts:
            self.written += text
            shown = text if self._parts or coming else text.lstrip()
            if shown:
                coming.append((shown, ink))
        self._parts += coming
        self._flow.extend(coming)

    def wrap(self, width: int) -> None:
        """Wrap everything anew."""
        self._flow = Flow(width)
        self._flow.extend(self._parts)
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

    def selected(self, selection: Selection, first: int) -> str:
        """What is selected of it as it was written, where its first line is the `first` of the conversation.

        Formatted lines stand for all that was written from the first of them to the last, with the fences around.
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


def folded_at(blocks: Iterable[Block], place: int) -> Block | None:
    """The long question whose last line, which says how it opens or folds, is the line `place` of all of these."""
    for block in blocks:
        count = len(block.lines)
        if place < count:
            return block if block.foldable and place == count - 2 else None  # an empty line is behind it
        place -= count
    return None


def _indented(line: Line) -> Line:
    return replace(line, runs=[(" " * INDENT, PLAIN), *line.runs])


def _copied(line: Line) -> str:
    return line.text + line.joint


def _plain(line: Line, start: int, end: int) -> str:
    if line.copied is not None:
        return line.copied
    text = line.text
    shift = INDENT if text.startswith(" " * INDENT) else 0
    return text[max(start, shift) : len(text) if end == -1 else end] + (line.joint if end == -1 else "")
