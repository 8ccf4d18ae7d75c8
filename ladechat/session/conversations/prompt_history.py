"""The questions of earlier sessions, for the prompt to recall: a file of JSON strings, one per line."""

import contextlib
import os
from pathlib import Path

import msgspec
from platformdirs import user_data_path

from ladechat.files import PRIVATE, append_line, read_saved, replace_file

MOST_QUESTIONS = 1000
MOST_CHARACTERS = 20_000
"""The longest question that is saved: anything longer was probably pasted."""


class PromptHistory:
    """Reads and adds questions in a file that only its owner can read, by default in the user's data folder. A history
    that cannot be read is replaced by a new one, and failures to write are ignored.

    Several programs may add at once. A question added at the moment in which another program shortens the file may be
    lost.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or user_data_path("ladechat") / "questions.jsonl"

    def read(self) -> tuple[list[str], str]:
        """Return the latest questions, oldest first, and what is wrong with the file, in a sentence; "" if nothing is.

        Consecutive duplicates are merged, and lines that cannot be read are skipped. A file twice as long as the limit
        is shortened.
        """
        found, problem = read_saved(self._path, _lines_and_questions)
        lines, questions = found or (0, [])
        if lines > 2 * MOST_QUESTIONS:
            with contextlib.suppress(OSError):
                replace_file(self._path, b"".join(map(_line, questions[-MOST_QUESTIONS:])), PRIVATE)
        return questions[-MOST_QUESTIONS:], problem

    def add(self, question: str) -> None:
        """Append a question to the file."""
        if len(question) > MOST_CHARACTERS:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
            try:
                append_line(descriptor, _line(question))
            finally:
                os.close(descriptor)


def _line(question: str) -> bytes:
    return msgspec.json.encode(question.encode("utf-8", "replace").decode()) + b"\n"


def _lines_and_questions(content: bytes) -> tuple[int, list[str]]:
    """Return the number of lines, and the questions in those that can be read.

    Raises:
        ValueError: none of them can be read.
    """
    lines = content.splitlines()
    questions: list[str] = []
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
            question = msgspec.json.decode(line, type=str)
            if questions[-1:] != [question]:
                questions.append(question)
    if lines and not questions:
        raise ValueError("no line of it is a question")
    return len(lines), questions
