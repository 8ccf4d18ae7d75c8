"""What was saved is read only where it is a file: nobody waits for a named pipe, or reads a device without end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ladechat.files import read_file
from ladechat.lessons.progress import DAMAGED, Progress, ProgressFile
from ladechat.session.prompt_history import PromptHistory
from ladechat.tuning.kept import read_kept


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


@no_files
def test_whoever_reads_what_was_saved_goes_on_without_it(place: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    place(path)
    assert ProgressFile(path).read() == (Progress(), DAMAGED)
    assert read_kept(path, "costs") is None
    assert PromptHistory(path).read() == []


def test_saved_costs_that_are_nested_without_end_are_none(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_text('{"costs": ' + "[" * 100_000)
    assert read_kept(path, "costs") is None


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_bytes(bytes(range(256)) * 1000)
    assert read_file(path) == bytes(range(256)) * 1000


def test_a_question_is_added_to_no_pipe_and_nobody_waits_for_a_reader_of_it(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    os.mkfifo(path)
    PromptHistory(path).add("Why?")
    assert not path.is_file()
