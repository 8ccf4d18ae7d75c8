"""Files that a question names by `@path`: found, completed, and sent as fenced text after the question."""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ladechat.files import read_file, seen
from ladechat.protocol import MOST_TEXT

NAMED = re.compile(r'(?<![^\s(])@(?:"([^"\n]+)"|([^\s"]\S*))')
"""A path in a question: `@notes.txt`, or `@"my notes.txt"` if there are spaces in it."""
BEGUN = re.compile(r'(?<![^\s(])@("?)((?:(?<=")[^"\n]*|[^\s"]*))$')
"""A path that is being typed: its quotation mark, if it has one, and its letters so far."""
SUFFIX = re.compile(
    r"\.(?:txt|md|rst|log|csv|tsv|jsonl?|ya?ml|toml|ini|cfg|xml|html?|css|[jt]sx?|py|ipynb|c|h|cc|[ch]pp|rs|go|java"
    r"|kt|rb|php|sh|sql|tex|pdf|docx?)$",
    re.IGNORECASE,
)
"""The endings by which a name after an `@` is taken for that of a file: decorators, users and domains have others."""
PUNCTUATION = ".,;:!?)]}'\""
"""May follow a path in a sentence."""
FENCE = "```"
MOST_ENTRIES = 5000
"""The entries of a folder that are looked at for completions."""
MOST_DROPPED = 10_000
"""The longest text, in characters, that may be the paths of files dropped on the terminal."""


class CannotAttach(Exception):
    """The reason why a file is not sent, and what to do, in a sentence."""


class Attachment(NamedTuple):
    """A file that a question names: where `@path` starts and ends, the typed path, and the file's size in bytes."""

    start: int
    end: int
    path: str
    size: int


def attachments(question: str) -> list[Attachment]:
    """Return the files that a question names. An `@` before anything but the path of a file means nothing."""
    matches = NAMED.finditer(question) if "@" in question else ()
    return [found for match in matches if (found := _attachment(match)) is not None]


def missing(question: str) -> list[str]:
    """Return the paths after an `@` that look like a file's, where no file's name is that or begins with it."""
    matches = NAMED.finditer(question) if "@" in question else ()
    paths = [match[1] or match[2].rstrip(PUNCTUATION) for match in matches if _attachment(match) is None]
    return [path for path in paths if SUFFIX.search(path) and not paths_from(path, 1)]


def _attachment(match: re.Match[str]) -> Attachment | None:
    quoted, bare = match.groups()
    for path in (quoted,) if quoted else (bare, bare.rstrip(PUNCTUATION)):
        if path and seen(_file(path), Path.is_file):
            with contextlib.suppress(OSError):  # it is removed at this moment
                end = match.end() - (0 if quoted else len(bare) - len(path))
                return Attachment(match.start(), end, path, _file(path).stat().st_size)
    return None


def _file(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no user of that name
        return Path(path)


def with_files(question: str) -> str:
    """Return a question as it is sent: each `@path` of a file is its path alone, and the files follow, once each.

    Raises:
        CannotAttach: a file cannot be read, is no text, or is too large.
    """
    found = attachments(question)
    if not found:
        return question
    sent, end = "", 0
    for one in found:
        sent, end = sent + question[end : one.start] + one.path, one.end
    files = [f"{path}:\n{_fenced(path)}" for path in dict.fromkeys(one.path for one in found)]
    return "\n\n".join([sent + question[end:], *files])


def _fenced(path: str) -> str:
    """Return a file's text between fences longer than any in it."""
    text = _text_of(path)
    fence = max([FENCE, *(run + "`" for run in re.findall("`{3,}", text))], key=len)
    last = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{Path(path).suffix[1:]}\n{text}{last}{fence}"


def _text_of(path: str) -> str:
    try:
        text = read_file(_file(path), MOST_TEXT).decode("utf-8-sig")
    except OSError as error:
        why = error.strerror or str(error)
    except UnicodeDecodeError:
        why = "it is no text in UTF-8"
    else:
        if "\0" not in text:
            return text
        why = "it is no text"
    raise CannotAttach(f"{path} cannot be sent: {why}. Without the @ before it, its name alone is sent.")


# --- while it is typed ------------------------------------------------------------------------------------------------


def begun(before_cursor: str) -> tuple[str, str] | None:
    """Return the `@path` that ends at the cursor, and the path without its sign; None if none does."""
    match = BEGUN.search(before_cursor) if "@" in before_cursor else None
    return None if match is None else (match[0], match[2])


def named(path: str) -> str:
    """Return a path as a question names it; that of a folder is left open for more."""
    if not re.search(r"\s", path) and path.rstrip(PUNCTUATION) == path:
        return f"@{path}"
    return f'@"{path}' if path.endswith("/") else f'@"{path}"'


def paths_from(typed: str, most: int = 50) -> list[str]:
    """Return the paths of files and folders that begin like this, the same path first; folders end with a slash.

    Hidden ones are left out unless their dot was typed.
    """
    before, slash, start = typed.rpartition("/")
    folder = before + slash
    try:
        names = sorted(_names(_file(folder), start), key=lambda name: (name != start, name.lower()))
    except (OSError, ValueError):
        return []
    return [folder + name for name in names[:most]]


def _names(folder: Path, start: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for one in islice(entries, MOST_ENTRIES):
            hidden = one.name.startswith(".") and not start.startswith(".")
            if one.name.lower().startswith(start.lower()) and not hidden and one.name.isprintable():
                yield one.name + "/" * one.is_dir()


def dropped(text: str) -> list[str]:
    """Return the paths in a pasted text that holds nothing but absolute paths of files, as terminals paste what is
    dropped on them: with quotation marks, backslashes, or as file:// addresses.
    """
    text = text.strip()
    if len(text) > MOST_DROPPED or not text.startswith(("/", "~/", "file://", "'", '"')):
        return []
    if seen(_file(text), Path.is_file):
        return [text]
    try:
        words = [word.removeprefix("file://") for word in shlex.split(text)]
    except ValueError:
        return []
    paths = [unquote(word) if f"file://{word}" in text else word for word in words]
    return paths if all(_file(path).is_absolute() and seen(_file(path), Path.is_file) for path in paths) else []
