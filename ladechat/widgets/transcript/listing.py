"""Syntax highlighting: source code split into keywords, strings, comments and the like."""

from collections.abc import Iterable

from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, _TokenType
from pygments.util import ClassNotFound

from ladechat.widgets.flow import Ink, Markup, Run

LANGUAGES = {
    "bash": "Bash",
    "c": "C",
    "c++": "C++",
    "cpp": "C++",
    "css": "CSS",
    "diff": "diff",
    "dockerfile": "Dockerfile",
    "go": "Go",
    "haskell": "Haskell",
    "html": "HTML",
    "ini": "INI",
    "java": "Java",
    "javascript": "JavaScript",
    "js": "JavaScript",
    "json": "JSON",
    "kotlin": "Kotlin",
    "lua": "Lua",
    "make": "make",
    "makefile": "make",
    "php": "PHP",
    "py": "Python",
    "python": "Python",
    "r": "R",
    "ruby": "Ruby",
    "rust": "Rust",
    "scala": "Scala",
    "sh": "shell",
    "shell": "shell",
    "sql": "SQL",
    "swift": "Swift",
    "toml": "TOML",
    "ts": "TypeScript",
    "typescript": "TypeScript",
    "xml": "XML",
    "yaml": "YAML",
}
"""Highlighted languages, by the words used for them in answers: those whose lexers are known to take linear time."""
MOST_CHARACTERS = 20_000
"""Maximum length of a highlighted listing."""

_KINDS: tuple[tuple[_TokenType, Markup], ...] = (
    (Comment, "comment"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (String, "string"),
    (Number, "number"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Decorator, "name"),
    (Name.Tag, "keyword"),
    (Name.Attribute, "name"),
    (Generic.Inserted, "string"),
    (Generic.Deleted, "number"),
    (Generic.Heading, "keyword"),
    (Generic.Subheading, "keyword"),
)


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
    return next((kind for family, kind in _KINDS if token in family), "listing")
