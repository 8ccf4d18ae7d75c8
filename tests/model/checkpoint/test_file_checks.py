"""A file of a checkpoint that no library could read is named, with what is wrong, and without Python's words."""

from pathlib import Path

import pytest

from ladechat.model.checkpoint.files import INDEX, OBJECTS, SINGLE_FILE, check_files
from tests.model.refusals import assert_refused

CONTENTS: dict[str, tuple[bytes, str]] = {
    "a list": (b"[1]", "holds a list, not an object"),
    "a string": (b'"a"', "holds a string, not an object"),
    "a number": (b"7", "holds a number, not an object"),
    "a truth": (b"true", "holds true or false, not an object"),
    "null": (b"null", "holds null, not an object"),
    "no JSON": (b'{"a": 1,\n b}', "is no JSON: line 2, column 2"),
    "empty": (b" \n", "is empty"),
    "deep": (b"[" * 100_000, "is nested too deeply"),
    "huge": (b'{"a": ' + b"1" * 5000 + b"}", "holds a number of thousands of digits"),
    "bytes": (b"\xff\xfe\x00", "is no UTF-8 text"),
}


def assert_fault(folder: Path, says: str) -> None:
    assert_refused(lambda: check_files(folder, "the model"), "load_failed", says)


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("file", [*OBJECTS, INDEX])
def test_what_is_no_object_is_said_of_the_file(file: str, content: str, tmp_path: Path) -> None:
    written, says = CONTENTS[content]
    (tmp_path / file).write_bytes(written)
    assert_fault(tmp_path, f"The {file} of the model {says}.")


@pytest.mark.parametrize("file", [*OBJECTS, INDEX, "chat_template.jinja"])
def test_a_folder_in_the_place_of_a_file_is_said(file: str, tmp_path: Path) -> None:
    (tmp_path / file).mkdir()
    assert_fault(tmp_path, f"The {file} of the model cannot be read: ")


def test_a_template_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "additional_chat_templates").mkdir()
    for file in ("chat_template.jinja", "additional_chat_templates/tools.jinja"):
        (tmp_path / file).write_bytes(b"\xff")
        assert_fault(tmp_path, f"The {Path(file).name} of the model is no UTF-8 text.")


def test_an_index_beside_whole_weights_is_not_looked_at_and_files_that_are_not_there_are_no_fault(
    tmp_path: Path,
) -> None:
    check_files(tmp_path, "the model")
    (tmp_path / INDEX).write_text("[]")
    (tmp_path / SINGLE_FILE).touch()
    check_files(tmp_path, "the model")
