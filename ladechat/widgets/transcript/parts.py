"""The parts of formatted text, paragraphs, tables and highlighted listings, which know their place in the raw text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

from ladechat.widgets.cells import cell_len
from ladechat.widgets.flow import Ink, Line, Markup, Run, wrap

LANGUAGES = {
    word: name
    for name, words in {
        "Bash": "bash", "C": "c", "C++": "c++ cpp", "CSS": "css", "diff": "diff", "Dockerfile": "dockerfile",
        "Go": "go", "Haskell": "haskell", "HTML": "html", "INI": "ini", "Java": "java", "JavaScript": "javascript js",
        "JSON": "json", "Kotlin": "kotlin", "Lua": "lua", "make": "make makefile", "PHP": "php", "Python": "py python",
        "R": "r", "Ruby": "ruby", "Rust": "rust", "Scala": "scala", "shell": "sh shell", "SQL": "sql", "Swift": "swift",
        "TOML": "toml", "TypeScript": "ts typescript", "XML": "xml", "YAML": "yaml",
    }.items()
    for word in words.split()
}  # fmt: skip
"""Highlighted languages, by the words used for them in answers: those whose lexers are known to take linear time."""
MOST_CHARACTERS = 20_000
"""Maximum length of a highlighted listing."""

_KINDS: dict[Markup, tuple[_TokenType, ...]] = {
    "comment": (Comment,),
    "keyword": (Keyword, Operator.Word, Name.Tag, Generic.Heading, Generic.Subheading),
    "string": (String, Generic.Inserted),
    "number": (Number, Generic.Deleted),
    "name": (Name.Function, Name.Class, Name.Decorator, Name.Attribute),
}


def language_name(word: str) -> str:
    """Return the name of a language, given the word after the opening fence; that word if it is not known."""
    return LANGUAGES.get(word.lower(), word)


def listing(code: str, language: str) -> list[list[Run]]:
    """Return the lines of a listing, highlighted for its language."""
    lines: list[list[Run]] = [[]]
    for kind, text in _tokens(code, language):
        first, *more = text.split("\n")
        for number, part in enumerate([first, *more]):
            if number:
                lines.append([])
            if part:
                lines[-1].append((part, Ink(kind)))
    return lines


def _tokens(code: str, language: str) -> Iterable[tuple[Markup, str]]:
    if language.lower() not in LANGUAGES or len(code) > MOST_CHARACTERS:
        return [("listing", code)]
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [("listing", code)]
    return ((_kind(token), text) for token, text in lexer.get_tokens(code))


def _kind(token: _TokenType) -> Markup:
    return next((kind for kind, families in _KINDS.items() if any(token in one for one in families)), "listing")


LEAST_TEXT_CELLS = 16
"""Minimum cells of text in a line; bullets and bars of deep nesting are dropped for it."""
MARK = Ink("mark")
RULE_CELLS = 24
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
"""A character written as a number or a named entity."""


@dataclass(eq=False)
class Paragraph:
    """Text shown without line breaks of its own, until it is wrapped.

    Attributes:
        runs: the styled text; runs in the ink `MARK` were not written like that.
        first, rest: the prefix of the first line, and of each line after it.
        start, end: its place in `source`.
        words: whether it is wrapped between words.
        whole: whether copying a part of it copies all of it.
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
        """Return the lines, wrapped for `width` cells."""
        first, rest = _narrowed(self.first, width), _narrowed(self.rest, width)
        before = max(_cells(first), _cells(rest))
        shown: list[Line] = []
        at = 0
        for number, line in enumerate(wrap(self.runs, max(width - before, 1), words=self.words)):
            prefix = rest if number else first
            origin = Place(self, at, sum(len(text) for text, _ in prefix))
            shown.append(Line((*prefix, *line.runs), line.joint, origin=origin))
            at += len(line.text) + len(line.joint)
        return shown

    @cached_property
    def places(self) -> list[int]:
        """The index in `source` of each shown character. A mark has that of the character before it."""
        here = self.start
        places: list[int] = []
        for text, ink in self.runs:
            for character in text:
                found, beyond = self._found(character, here) if ink != MARK else (-1, here)
                places.append(max(here - 1, self.start) if found < 0 else found)
                here = beyond
        return places

    def _found(self, character: str, here: int) -> tuple[int, int]:
        """Return the index in `source` of a shown character, from `here` on, and the index after it; else -1 and
        `here`.
        """
        entity = _ENTITY.match(self.source, here, self.end) if character != "&" else None
        if entity is not None:
            return here, entity.end()
        found = self.source.find(character, here, self.end)
        if character == " ":  # in code, line breaks are shown as spaces
            broken = self.source.find("\n", here, self.end if found < 0 else found)
            found = found if broken < 0 else broken
        return found, here if found < 0 else found + 1


@dataclass(frozen=True)
class Place:
    """A line of a paragraph: its first character is the paragraph's `at`th, after `prefix` other characters."""

    paragraph: Paragraph
    at: int
    prefix: int

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where characters `start` to `end` of the line are in the raw text, with markup at its ends."""
        paragraph = self.paragraph
        places = paragraph.places
        first, last = self.at + max(start - self.prefix, 0), self.at + max(end - self.prefix, 0)
        if paragraph.whole or not places:
            return paragraph.start, paragraph.end
        begin = paragraph.start if first == 0 else places[min(first, len(places) - 1)]
        if last >= len(places):
            return begin, paragraph.end
        return begin, min(places[last - 1] + 1, paragraph.end) if last else begin


@dataclass(eq=False)
class Table:
    """Rows of equally many cells, headings first. A table too wide for the screen is shown as a list for each row."""

    rows: list[list[list[Run]]]
    spans: list[tuple[int, int]]
    before: list[Run]
    source: str

    def lines(self, width: int) -> list[Line]:
        """Return the lines, laid out for `width` cells."""
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


def _cells(runs: Sequence[Run]) -> int:
    return sum(cell_len(text) for text, _ in runs)


def _narrowed(runs: list[Run], width: int) -> list[Run]:
    """Return as many of the last runs as leave room for text."""
    room = max(width - LEAST_TEXT_CELLS, 0)
    while runs and _cells(runs) > room:
        runs = runs[1:]
    return runs
