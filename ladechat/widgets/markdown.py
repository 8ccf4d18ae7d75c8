"""Markdown as lines of inks: headings, lists, tables and listings as they are read, wrapped like any other text.

What was written is parsed block by block, so a text that grows at its end is parsed again from its last block on.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from ladechat.widgets.cells import cell_len
from ladechat.widgets.flow import Ink, Line, Markup, Run, wrap
from ladechat.widgets.listing import language_name, listing

MOST_CHARACTERS = 200_000
"""Of a text that is formatted; what is beyond stays as it was written."""
MOST_COLUMNS = 40
"""A table of more columns stays as it was written: each of its rows would be filled up to all of them."""
MOST_INLINE = 4_000
"""Characters of a paragraph whose marks are read: to look for the ends of nested ones takes time by the square."""
LEAST_TEXT_CELLS = 16
"""Bullets and bars of deep nesting give way to the text, where it would have fewer."""

MARK = Ink("mark")
RULE_CELLS = 24
_NEVER = ["html_block", "html_inline", "autolink", "inline"]
"""Rules that are not used. What is in a line is parsed here, where it is not too long."""
_PARSER = MarkdownIt("commonmark", {"maxNesting": 20}).enable(["table", "strikethrough"]).disable(_NEVER)
_PARSER_WITHOUT_TABLES = MarkdownIt("commonmark", {"maxNesting": 20}).enable("strikethrough").disable(_NEVER)
_TABLE = re.compile(rf"(?:\|[^|\n]*){{{MOST_COLUMNS}}}")


@dataclass(frozen=True)
class Code:
    """A listing in a text: its language as it is called, "" if none is named, and its lines."""

    language: str
    text: str

    @property
    def described(self) -> str:
        """For a message: "12 lines of Python"."""
        count = self.text.count("\n") + 1
        return f"{count} line{'s' * (count != 1)} of {self.language or 'code'}"


def listings(text: str) -> list[Code]:
    """The fenced listings of a text, in order."""
    fences = (token for token in _PARSER.parse(text[:MOST_CHARACTERS]) if token.type == "fence")
    return [Code(language_name(_language(token)), token.content.removesuffix("\n")) for token in fences]


@dataclass(eq=False)
class Paragraph:
    """Text that is shown without a line break of its own, until it is wrapped.

    Attributes:
        runs: what is shown; marks among it were not written like that.
        first, rest: what stands before the first line, and before each line after it.
        start, end: where it stands in `source`.
        words: whether it is wrapped between words.
        whole: whether a part of it stands for all of it when it is copied.
    """

    runs: list[Run]
    first: list[Run]
    rest: list[Run]
    source: str
    start: int
    end: int
    words: bool = True
    whole: bool = False

    def lines(self, width: int) -> list[Line]:
        """Wrapped for `width` cells."""
        first, rest = _narrowed(self.first, width), _narrowed(self.rest, width)
        before = max(_cells(first), _cells(rest))
        shown: list[Line] = []
        at = 0
        for number, line in enumerate(wrap(self.runs, max(width - before, 1), words=self.words)):
            prefix = rest if number else first
            origin = Place(self, at, sum(len(text) for text, _ in prefix))
            shown.append(Line([*prefix, *line.runs], line.joint, origin=origin))
            at += len(line.text) + len(line.joint)
        return shown

    @cached_property
    def places(self) -> list[int]:
        """Where each shown character stands in `source`. A mark has the place of what is before it."""
        here = self.start
        places: list[int] = []
        for text, ink in self.runs:
            for character in text:
                found = self.source.find(character, here, self.end) if ink != MARK else -1
                places.append(max(here - 1, self.start) if found < 0 else found)
                here = here if found < 0 else found + 1
        return places


@dataclass(frozen=True)
class Place:
    """A line of a paragraph: its first character is the paragraph's `at`th, behind `prefix` others."""

    paragraph: Paragraph
    at: int
    prefix: int

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters `start` to `end` of the line stand in the text; with the marks around, at its ends."""
        paragraph = self.paragraph
        places = paragraph.places
        first, last = self.at + max(start - self.prefix, 0), self.at + max(end - self.prefix, 0)
        if paragraph.whole or not places:
            return paragraph.start, paragraph.end
        begin = paragraph.start if first == 0 else places[min(first, len(places) - 1)]
        return begin, paragraph.end if last >= len(places) else places[last - 1] + 1 if last else begin


@dataclass(eq=False)
class Table:
    """Rows of as many cells each, the first one their headings. Where it is too wide, each row is a list of its own."""

    rows: list[list[list[Run]]]
    spans: list[tuple[int, int]]
    before: list[Run]
    source: str

    def lines(self, width: int) -> list[Line]:
        """Laid out for `width` cells."""
        before = _narrowed(self.before, width)
        room = max(width - _cells(before), 1)
        columns = [max(map(_cells, column)) for column in zip(*self.rows, strict=True)]
        side_by_side = sum(columns) + 3 * (len(columns) - 1) <= room
        texts = self._side_by_side(columns) if side_by_side else self._one_by_one(room)
        shown: list[Line] = []
        for runs, (start, end) in texts:
            paragraph = Paragraph(runs, before, before, self.source, start, end, whole=True)
            shown += paragraph.lines(width)
        return shown

    def _side_by_side(self, columns: Sequence[int]) -> Iterator[tuple[list[Run], tuple[int, int]]]:
        for number, (row, span) in enumerate(zip(self.rows, self.spans, strict=True)):
            runs: list[Run] = []
            for column, (cell, cells) in enumerate(zip(row, columns, strict=True)):
                if column:
                    runs.append((" │ ", MARK))
                runs += [*cell, (" " * (cells - _cells(cell)), MARK)]
            yield runs, span
            if number == 0:
                yield [("─┼─".join("─" * cells for cells in columns), MARK)], span

    def _one_by_one(self, room: int) -> Iterator[tuple[list[Run], tuple[int, int]]]:
        headings, *_ = self.rows
        if len(self.rows) == 1:
            yield [run for cell in headings for run in [*cell, (" ", MARK)]], self.spans[0]
        for number, (row, span) in enumerate(zip(self.rows[1:], self.spans[1:], strict=True)):
            if number:
                yield [("─" * min(RULE_CELLS, room), MARK)], span
            for heading, cell in zip(headings, row, strict=True):
                yield [*heading, (": ", MARK), *cell], span


Part = Paragraph | Table


@dataclass
class Formatted:
    """A text in Markdown that may grow at its end, as lines for the present width.

    What can no longer change is kept: all in front of the last block that follows an empty line.
    """

    width: int
    _source: str = ""
    _done: list[Line] = field(default_factory=list)
    _parts: list[Part] = field(default_factory=list)
    _last: list[Part] = field(default_factory=list)
    _last_start: int = 0
    _tail: list[Line] = field(default_factory=list)

    @property
    def lines(self) -> list[Line]:
        """All of it."""
        return [*self._done, *self._tail]

    def show(self, source: str) -> None:
        """Take over the text: what was shown before, and maybe more at its end."""
        self._source = source
        beginning, beyond = source[:MOST_CHARACTERS], source[MOST_CHARACTERS:]
        blocks = _blocks(beginning, self._last_start)
        last = max((n for n, block in enumerate(blocks) if _behind_empty_line(source, block.start)), default=0)
        for block in blocks[:last]:
            self._parts += block.parts
            self._done += self._wrapped(block.parts)
        self._last = [part for block in blocks[last:] for part in block.parts]
        self._last_start = blocks[last].start if blocks else self._last_start
        if beyond:
            self._last += _as_written(source, MOST_CHARACTERS)
        self._tail = self._wrapped(self._last)

    def wrap(self, width: int) -> None:
        """Wrap everything anew."""
        self.width = width
        self._done, self._tail = self._wrapped(self._parts), self._wrapped(self._last)

    def _wrapped(self, parts: Sequence[Part]) -> list[Line]:
        return [line for part in parts for line in part.lines(self.width)]


@dataclass
class _Block:
    """A block of a text that is inside of no other, and where it begins."""

    start: int
    parts: list[Part] = field(default_factory=list)


def _behind_empty_line(source: str, start: int) -> bool:
    """What follows an empty line is not joined with what is before it, however the text goes on."""
    line_before = source.rfind("\n", 0, max(start - 1, 0)) + 1
    return start > 0 and not source[line_before:start].strip()


def _as_written(source: str, start: int) -> list[Part]:
    parts: list[Part] = []
    for text in source[start:].split("\n"):
        parts.append(Paragraph([(text, Ink("plain"))], [], [], source, start, start + len(text)))
        start += len(text) + 1
    return parts


def _blocks(source: str, start: int) -> list[_Block]:
    """The blocks of a text from `start` on."""
    text = source[start:]
    parser = _PARSER if not _TABLE.search(text) else _PARSER_WITHOUT_TABLES
    environment: dict[str, Any] = {}
    reader = _Reader(source, start)
    for token in parser.parse(text, environment):
        if token.type == "inline" and len(token.content) <= MOST_INLINE:
            token.children = []
            parser.inline.parse(token.content, parser, environment, token.children)
        reader.read(token)
    return reader.blocks


@dataclass
class _Level:
    """A quotation or an item of a list: what stands before its first line, and before the others."""

    first: Run | None
    rest: Run


class _Reader:
    """Makes paragraphs of the tokens of a parser."""

    def __init__(self, source: str, start: int) -> None:
        self.blocks: list[_Block] = []
        self._source = source
        self._starts = [start]
        self._starts += [start + found.end() for found in re.finditer("\n", source[start:])]
        self._levels: list[_Level] = []
        self._lists: list[int | None] = []
        self._block = Ink("plain")
        self._table: Table | None = None
        self._begun = start > 0
        self._end = start

    def read(self, token: Token) -> None:
        """Take in the next token."""
        if token.level == 0 and token.nesting >= 0:
            self.blocks.append(_Block(self._span(token)[0]))
        match token.type:
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                self._lists.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._open_item(token)
            case "blockquote_open":
                self._gap(token)
                self._levels.append(_Level(("▌ ", MARK), ("▌ ", MARK)))
            case "list_item_close" | "blockquote_close":
                self._close_level()
            case "heading_open":
                self._gap(token)
                self._block = Ink("heading")
            case "paragraph_open":
                if not token.hidden:
                    self._gap(token)
            case "heading_close" | "paragraph_close":
                self._block = Ink("plain")
            case _:
                self._read_content(token)

    def _read_content(self, token: Token) -> None:
        match token.type:
            case "inline" if self._table is not None:
                self._table.rows[-1].append(_joined(_inline(token, self._block)))
            case "inline":
                self._add_lines(token)
            case "fence" | "code_block":
                self._gap(token)
                self._add_listing(token)
            case "hr":
                self._gap(token)
                self._add([("─" * RULE_CELLS, MARK)], *self._span(token), words=False, whole=True)
            case "table_open":
                self._gap(token)
                self._table = Table([], [], self._before_others(), self._source)
            case "tr_open" if self._table is not None:
                self._table.rows.append([])
                self._table.spans.append(self._span(token))
            case "thead_open":
                self._block = Ink("strong")
            case "thead_close":
                self._block = Ink("plain")
            case "table_close" if self._table is not None:
                self.blocks[-1].parts.append(self._table)
                self._table = None

    # --- what stands before a line ------------------------------------------------------------------------------------

    def _open_item(self, token: Token) -> None:
        number = self._lists[-1]
        marker = "• " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1
        if len(self._lists) == 1 and not self.blocks[-1].parts:
            self._gap(token)
        self._levels.append(_Level((marker, MARK), (" " * len(marker), MARK)))

    def _close_level(self) -> None:
        if self._levels[-1].first is not None:  # it is empty
            self._add([], self._end, self._end)
        self._levels.pop()

    def _before_others(self) -> list[Run]:
        return [level.rest for level in self._levels]

    def _before_first(self) -> list[Run]:
        """What stands before the next line: what is before others too, and bullets that no line has had yet."""
        before = [level.first or level.rest for level in self._levels]
        for level in self._levels:
            level.first = None
        return before

    def _gap(self, token: Token) -> None:
        """An empty line before a block, unless a bullet has just been put there."""
        if any(level.first is not None for level in self._levels):
            return
        if self._begun:
            at, _ = self._span(token)
            self._add([], at, at)
        self._begun = True

    # --- paragraphs ---------------------------------------------------------------------------------------------------

    def _span(self, token: Token) -> tuple[int, int]:
        """Where the lines of a token stand, without the line break behind them."""
        if token.map is None:
            return self._end, self._end
        first, beyond = token.map
        end = self._starts[beyond] - 1 if beyond < len(self._starts) else len(self._source)
        return self._starts[first], max(end, self._starts[first])

    def _add(self, runs: list[Run], start: int, end: int, *, words: bool = True, whole: bool = False) -> None:
        first = self._before_first()
        part = Paragraph(runs, first, self._before_others(), self._source, start, end, words, whole)
        self._end = end
        self.blocks[-1].parts.append(part)
        self._begun = True

    def _add_lines(self, token: Token) -> None:
        """The lines of a paragraph. Each begins where the one before has ended."""
        start, end = self._span(token)
        for runs in _inline(token, self._block):
            self._add(runs, start, end)
            paragraph = self.blocks[-1].parts[-1]
            assert isinstance(paragraph, Paragraph)
            last = paragraph.places[-1] if paragraph.places else start
            line_end = self._source.find("\n", last, end)
            paragraph.end = line_end if line_end >= 0 else end
            start = min(paragraph.end + 1, end)

    def _add_listing(self, token: Token) -> None:
        language = _language(token)
        bar: Run = ("│ ", MARK)
        first, _ = token.map or [0, 1]
        if language:
            start = self._starts[first]
            self._add([(language_name(language), MARK)], start, start, whole=True)
        fenced = token.type == "fence"
        self._levels.append(_Level(bar, bar))
        for number, runs in enumerate(listing(token.content.removesuffix("\n"), language), start=first + fenced):
            start = self._starts[min(number, len(self._starts) - 1)]
            line_end = self._source.find("\n", start)
            self._add(runs, start, line_end if line_end >= 0 else len(self._source), words=False)
        self._levels.pop()


def _language(token: Token) -> str:
    return token.info.split()[0] if token.info.split() else ""


def _inline(token: Token, block: Ink) -> list[list[Run]]:
    """The lines of a paragraph, in inks."""
    if token.children is None:
        return [[(line, block)] for line in token.content.split("\n")]
    lines: list[list[Run]] = [[]]
    styles: list[str] = []
    targets: list[str] = []
    for child in token.children:
        match child.type:
            case "softbreak" | "hardbreak":
                lines.append([])
            case "code_inline":
                lines[-1].append((child.content, Ink("code")))
            case "link_open":
                styles.append("link")
                targets.append(str(child.attrGet("href") or ""))
            case "link_close":
                styles.pop()
                lines[-1].append((f" ({targets.pop()})", MARK))
            case "image":
                lines[-1] += [(child.content, Ink("link")), (f" ({child.attrGet('src')})", MARK)]
            case "strong_open" | "em_open" | "s_open":
                styles.append(child.type.removesuffix("_open"))
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case _:
                lines[-1].append((child.content, _ink(styles, block)))
    return lines


def _ink(styles: Sequence[str], block: Ink) -> Ink:
    if block.kind == "heading":
        return block
    strong, emphasis = "strong" in styles or block.kind == "strong", "em" in styles
    kind: Markup | None = None
    if "link" in styles:
        kind = "link"
    elif "s" in styles:
        kind = "struck"
    elif strong and emphasis:
        kind = "strong_emphasis"
    elif strong:
        kind = "strong"
    elif emphasis:
        kind = "emphasis"
    return Ink(kind) if kind else block


def _joined(lines: list[list[Run]]) -> list[Run]:
    return [run for line in lines for run in line]


def _cells(runs: Sequence[Run]) -> int:
    return sum(cell_len(text) for text, _ in runs)


def _narrowed(runs: list[Run], width: int) -> list[Run]:
    """As many of the last of these as leave room for text."""
    room = max(width - LEAST_TEXT_CELLS, 0)
    while runs and _cells(runs) > room:
        runs = runs[1:]
    return runs
