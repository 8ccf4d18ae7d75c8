"""What was saved is read only where it is a file: nobody waits for a named pipe, or reads a device without end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ladechat.files import read_file
from ladechat.session.prompt_history import PromptHistory


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


no_files = pytest.mark.parametrize("place", [_pipe, _device, Path.mkdir], ids=["pipe", "device", "folder"])


@no_files
def test_what_is_no_file_is_not_read(place: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    place(path)
    with pytest.raises(OSError, match=r"pipe|directory"):
        read_file(path)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_bytes(bytes(range(256)) * 1000)
    assert read_file(path) == bytes(range(256)) * 1000


def test_a_question_is_added_to_no_pipe_and_nobody_waits_for_a_reader_of_it(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    os.mkfifo(path)
    PromptHistory(path).add("Why?")
    assert not path.is_file()


def test_a_file_that_is_larger_than_it_may_be_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_bytes(bytes(11))
    assert len(read_file(path, most=11)) == 11
    with pytest.raises(OSError, match="larger"):
        read_file(path, most=10)
