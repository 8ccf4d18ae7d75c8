"""What was saved is read only where it is a file: nobody waits for a named pipe, or reads a device without end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ladechat.files import check_replaceable, read_file, replace_file
from ladechat.session.conversations.prompt_history import PromptHistory


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


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_one_and_what_it_leads_to_is_written(there: bool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(target)
    if there:
        target.write_bytes(b"old")
    check_replaceable(link)
    assert target.exists() == there
    replace_file(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and not target.is_symlink()
    assert {*tmp_path.rglob("*")} == {target.parent, target, link}


def test_a_link_to_itself_is_not_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    for touch in (check_replaceable, lambda path: replace_file(path, b"new")):
        with pytest.raises(OSError, match="symbolic links"):
            touch(link)
    assert link.is_symlink() and [link] == list(tmp_path.iterdir())


@no_files
def test_what_is_no_file_is_not_written(place: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    place(path)
    with pytest.raises(OSError, match=r"pipe|directory"):
        check_replaceable(path)
    assert [path] == list(tmp_path.iterdir())
