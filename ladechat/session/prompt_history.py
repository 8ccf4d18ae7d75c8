"""What was asked in earlier sessions, for the prompt to bring back: a file of JSON strings, one a line."""

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec
from platformdirs import user_data_path

from ladechat.session.appending import PRIVATE, append_line

MOST_QUESTIONS = 1000
MOST_CHARACTERS = 20_000
"""Of a question: what is longer was pasted from somewhere."""


class PromptHistory:
    """Reads and adds. A history that cannot be read is empty, and one that cannot be written is not missed.

    Several programs may add at once. A question that is added in the moment in which another program shortens the file
    may be lost.

    Args:
        path: the file, which only its user may read; by default in the user's data folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or user_data_path("ladechat") / "questions.jsonl"

    def read(self) -> list[str]:
        """The latest questions, oldest first; of several alike in a row, one. A file twice as long is shortened."""
        try:
            lines = self._path.read_bytes().split(b"\n") if self._path.is_file() else []
        except OSError:
            return []
        questions: list[str] = []
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
                question = msgspec.json.decode(line, type=str)
                if questions[-1:] != [question]:
                    questions.append(question)
        if len(lines) > 2 * MOST_QUESTIONS:
            self._replace(questions[-MOST_QUESTIONS:])
        return questions[-MOST_QUESTIONS:]

    def add(self, question: str) -> None:
        """Add a question."""
        if len(question) > MOST_CHARACTERS:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
            try:
                append_line(descriptor, _line(question))
            finally:
                os.close(descriptor)

    def _replace(self, questions: list[str]) -> None:
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix=".questions-", dir=self._path.parent)  # its user's alone
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(map(_line, questions))
            Path(name).replace(self._path)


def _line(question: str) -> bytes:
    return msgspec.json.encode(question.encode("utf-8", "replace").decode()) + b"\n"
