"""Markdown as styled lines: headings, lists, tables and listings as they are read, in bounded time for any text.

The text is parsed block by block, so when it grows at its end, only its last block is parsed again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token

from ladechat.widgets.flow import Ink, Line, Markup, Run, safe
from ladechat.widgets.formatting import counted
from ladechat.widgets.transcript.parts import MARK, RULE_CELLS, Paragraph, Part, Table, language_name, listing

MOST_COLUMNS = 40
"""A table of more columns is shown raw: each of its rows would be padded to all of them."""
MOST_FORMATTED = 200_000
"""Limit on the formatted characters of a text; those beyond are shown raw."""
MOST_INLINE = 4_000
"""Limit on the characters of a paragraph with inline markup: finding the ends of nested marks takes quadratic time."""
_NEVER = ["html_block", "html_inline", "autolink", "reference", "inline"]
"""Disabled rules of the parser. Inline markup is parsed separately, if the paragraph is not too long. A link whose
target is given elsewhere in the text (`[a]: target`) stays raw: the target would change lines already shown.
"""
_APART = {"paragraph_open", "heading_open", "blockquote_open", "fence", "code_block", "hr", "table_open"}
"""Tokens before which an empty line is shown."""


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table by the library's rule, unless it has too many columns; return whether there is one."""
    heading = state.src[state.bMarks[start] : state.eMarks[start]]
    return heading.count("|") < MOST_COLUMNS and table(state, start, end, silent)


_PARSER = MarkdownIt("commonmark", {"maxNesting": 20}).enable(["table", "strikethrough"]).disable(_NEVER)
_PARSER.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})


@dataclass
class MarkdownBlock:
    """A top-level block of a text, and where it begins."""

    start: int
    parts: list[Part] = field(default_factory=list)


def blocks_of(source: str, start: int, begun: bool) -> list[MarkdownBlock]:
    """Return the blocks of a text from index `start` on, where one begins. `begun` is whether something is shown before
    it, to be separated by an empty line.
    """
    reader = _BlockReader(source, start, begun)
    for token in _PARSER.parse(source[start:]):
        if token.type == "inline" and len(token.content) <= MOST_INLINE:
            token.children = []
            _PARSER.inline.parse(token.content, _PARSER, {}, token.children)
        reader.read(token)
    return reader.blocks


class Listing(NamedTuple):
    """A fenced block of code, and the word for its language after the opening fence; "" if there is none."""

    code: str
    language: str

    @property
    def described(self) -> str:
        """Its length and language, as "12 lines of Python"."""
        lines = counted(self.code.count("\n") + 1, "line")
        return f"{lines} of {language_name(self.language) or 'code'}"


def listings_of(source: str) -> list[Listing]:
    """Return the fenced blocks of code in a text, except empty ones."""
    fences = [token for token in _PARSER.parse(source) if token.type == "fence"]
    listings = [Listing(fence.content.removesuffix("\n"), _language(fence)) for fence in fences]
    return [listing for listing in listings if listing.code.strip()]


@dataclass
class _Level:
    """A quotation or an item of a list: the prefix of its first line, and of its other lines."""

    first: Run | None
    rest: Run


class _BlockReader:
    """Makes paragraphs and tables from the tokens of the parser."""

    def __init__(self, source: str, start: int, begun: bool) -> None:
        self.blocks: list[MarkdownBlock] = []
        self._source = source
        self._starts = [start]
        self._starts += [start + found.end() for found in re.finditer("\n", source[start:])]
        self._levels: list[_Level] = []
        self._lists: list[int | None] = []
        self._block = Ink("plain")
        self._table: Table | None = None
        self._begun = begun
        self._end = start

    def read(self, token: Token) -> None:
        if token.level == 0 and token.nesting >= 0:
            self.blocks.append(MarkdownBlock(self._span(token)[0]))
        if token.type in _APART and not token.hidden:
            self._gap(token)
        match token.type:
            case "bullet_list_open":
                self._lists.append(None)
            case "ordered_list_open":
                start = token.attrGet("start")  # only there if it is not 1; it may be 0
                self._lists.append(1 if start is None else int(start))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._open_item(token)
            case "blockquote_open":
                self._levels.append(_Level(("▌ ", MARK), ("▌ ", MARK)))
            case "list_item_close" | "blockquote_close":
                self._close_level()
            case "heading_open":
                self._block = Ink("heading")
            case "thead_open":
                self._block = Ink("strong")
            case "heading_close" | "paragraph_close" | "thead_close":
                self._block = Ink("plain")
            case _:
                self._read_content(token)

    def _read_content(self, token: Token) -> None:
        match token.type:
            case "inline" if self._table is not None:
                self._table.rows[-1].append([run for line in _inline(token, self._block) for run in line])
            case "inline":
                self._add_lines(token)
            case "fence" | "code_block":
                self._add_listing(token)
            case "hr":
                self._add([("─" * RULE_CELLS, MARK)], *self._span(token), words=False, whole=True)
            case "table_open":
                self._table = Table([], [], self._before_others(), self._source)
            case "tr_open" if self._table is not None:
                self._table.rows.append([])
                self._table.spans.append(self._span(token))
            case "table_close" if self._table is not None:
                self.blocks[-1].parts.append(self._table)
                self._table = None

    def _open_item(self, token: Token) -> None:
        number = self._lists[-1]
        marker = "• " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1
        if len(self._lists) == 1 and not self.blocks[-1].parts:
            self._gap(token)
        self._levels.append(_Level((marker, MARK), (" " * len(marker), MARK)))

    def _close_level(self) -> None:
        if self._levels[-1].first is not None:  # the item is empty
            self._add([], self._end, self._end)
        self._levels.pop()

    def _before_others(self) -> list[Run]:
        return [level.rest for level in self._levels]

    def _before_first(self) -> list[Run]:
        """Return the prefix of the next line: that of other lines, or a bullet that has not been used yet."""
        before = [level.first or level.rest for level in self._levels]
        for level in self._levels:
            level.first = None
        return before

    def _gap(self, token: Token) -> None:
        """Add an empty line before a block, unless its line has a new bullet."""
        if not any(level.first is not None for level in self._levels):
            if self._begun:
                at, _ = self._span(token)
                self._add([], at, at)
            self._begun = True

    def _span(self, token: Token) -> tuple[int, int]:
        """Return the start and end of a token's lines in the source, without the line break at the end."""
        if token.map is None:
            return self._end, self._end
        first, beyond = token.map
        end = self._starts[beyond] - 1 if beyond < len(self._starts) else len(self._source)
        return self._starts[first], max(end, self._starts[first])

    def _add(self, runs: list[Run], start: int, end: int, *, words: bool = True, whole: bool = False) -> Paragraph:
        first = self._before_first()
        part = Paragraph(runs, first, self._before_others(), self._source, start, end, words, whole)
        self._end = end
        self.blocks[-1].parts.append(part)
        self._begun = True
        return part

    def _add_lines(self, token: Token) -> None:
        """Add the lines of a paragraph. Each begins where the one before ends."""
        start, end = self._span(token)
        for runs in _inline(token, self._block):
            paragraph = self._add(runs, start, end)
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
    return next(iter(_decoded(token.info).split()), "")


def _decoded(text: str) -> str:
    """Return a text decoded by the parser, safe to print in one line.

    The source was safe, but entities are characters by now: a carriage return, or a mark that reverses the text. A tab
    and a line break count as white space, as they do for the parser.
    """
    return safe(text.replace("\t", " ")).replace("\n", " ")


def _inline(token: Token, block: Ink) -> list[list[Run]]:
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
    return [[(_decoded(text), ink) for text, ink in line] for line in lines]


def _ink(styles: Sequence[str], block: Ink) -> Ink:
    if block.kind == "heading":
        return block
    strong, emphasis = "strong" in styles or block.kind == "strong", "em" in styles
    kinds: tuple[tuple[Markup, bool], ...] = (
        ("link", "link" in styles),
        ("struck", "s" in styles),
        ("strong_emphasis", strong and emphasis),
        ("strong", strong),
        ("emphasis", emphasis),
    )
    return next((Ink(kind) for kind, holds in kinds if holds), block)


@dataclass
class Formatted:
    """A Markdown text that may grow at its end, as lines for the current width.

    Blocks that can no longer change are cached: all before the last block that follows an empty line and whose first
    line is complete.
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
        return [*self._done, *self._tail]

    def show(self, source: str) -> None:
        """Replace the text, which must begin with the text shown before."""
        self._source = source
        beginning, beyond = source[:MOST_FORMATTED], source[MOST_FORMATTED:]
        blocks = blocks_of(beginning, self._last_start, bool(self._parts))
        last = max((n for n, block in enumerate(blocks) if _is_apart(source, block.start)), default=0)
        for block in blocks[:last]:
            self._parts += block.parts
            self._done += self._wrapped(block.parts)
        self._last = [part for block in blocks[last:] for part in block.parts]
        self._last_start = blocks[last].start if blocks else self._last_start
        if beyond:
            self._last += _as_written(source, MOST_FORMATTED)
        self._tail = self._wrapped(self._last)

    def wrap(self, width: int) -> None:
        """Wrap all blocks again for a width in cells."""
        self.width = width
        self._done, self._tail = self._wrapped(self._parts), self._wrapped(self._last)

    def _wrapped(self, parts: Sequence[Part]) -> list[Line]:
        return [line for part in parts for line in part.lines(self.width)]


def _is_apart(source: str, start: int) -> bool:
    """Return whether a block stays separate from the one before it, however the text continues.

    It must follow an empty line, and its first line must be complete: after a list, `2` may still become the item `2.
    two` of it.
    """
    line_before = source.rfind("\n", 0, max(start - 1, 0)) + 1
    return start > 0 and not source[line_before:start].strip() and source.find("\n", start) >= 0


def _as_written(source: str, start: int) -> list[Part]:
    parts: list[Part] = []
    for text in source[start:].split("\n"):
        parts.append(Paragraph([(text, Ink("plain"))], [], [], source, start, start + len(text)))
        start += len(text) + 1
    return parts
