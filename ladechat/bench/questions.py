"""The questions of a benchmark: those that come with ladechat, and files in the same format."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ladechat.bench.options import KINDS, BenchRefused
from ladechat.toml_text import NotToml, parsed

CHOICE = f"give --questions some of {', '.join(KINDS)}, or a file that ends in .toml"
FORM = 'it has to hold prompts = ["…", ["…", "…"]]: questions, and lists of a conversation\'s questions'


@dataclass(frozen=True, slots=True)
class Question:
    """The user's side of one conversation, turn by turn; `name` is unique among the questions of its kind."""

    kind: str
    name: str
    turns: tuple[str, ...]


MOST_BYTES = 10_000_000
"""The maximum size of a file of questions: a benchmark of more would take days."""


def read_questions(sources: Sequence[str]) -> list[Question]:
    """Return the questions of these kinds and files, in order. The kind of a file's questions is the file's name.

    Raises:
        BenchRefused: no source, an unknown kind, or a file that cannot be read or has another format.
    """
    if not sources:
        raise BenchRefused(f"No questions are named; {CHOICE}.")
    return [question for source in sources for question in _read(source)]


def _read(source: str) -> list[Question]:
    if source in KINDS:
        text = (files("ladechat.bench") / "questions" / f"{source}.toml").read_text("utf-8")
        return _parse(source, source, text)
    path = Path(source).expanduser()
    if path.suffix != ".toml":
        raise BenchRefused(f"There are no questions {source!r}; {CHOICE}.")
    try:
        if path.exists() and not path.is_dir() and not path.is_file():
            raise BenchRefused(f"{source} is a device or a pipe, not a file; give --questions another one.")
        if path.stat().st_size > MOST_BYTES:
            raise BenchRefused(f"{source} is larger than {MOST_BYTES // 10**6} MB; give --questions fewer in a file.")
        return _parse(path.stem, source, path.read_text("utf-8"))
    except OSError as error:
        raise BenchRefused(
            f"{source} cannot be read: {error.strerror or error}; give --questions another file."
        ) from error
    except UnicodeDecodeError as error:
        raise BenchRefused(f"{source} is no file of questions, for it is not UTF-8 text; {FORM}.") from error


def _parse(kind: str, source: str, text: str) -> list[Question]:
    try:
        content = parsed(text)
    except NotToml as error:
        raise BenchRefused(f"{source} is no file of questions, for it is not TOML: {error}; {FORM}.") from error
    found = content.get("prompts")
    if not isinstance(found, list) or not found:
        raise BenchRefused(f"{source} is no file of questions, for it has no list named prompts; {FORM}.")
    return [
        Question(kind, f"{kind} {number}", _turns(source, number, entry)) for number, entry in enumerate(found, start=1)
    ]


def _turns(source: str, number: int, entry: Any) -> tuple[str, ...]:
    turns = entry if isinstance(entry, list) else [entry]
    if not turns or not all(isinstance(turn, str) and turn.strip() for turn in turns):
        raise BenchRefused(
            f"Question {number} of {source} is neither a text nor a list of texts, or one is empty; {FORM}."
        )
    return tuple(turns)
