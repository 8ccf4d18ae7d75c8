"""Files that a question names: which they are, how they are sent, and how their paths are completed."""

import os
from pathlib import Path

import pytest

from ladechat import attachments
from ladechat.attachments import CannotAttach, begun, dropped, named, paths_from, with_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with some files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    for name in ("notes.txt", "notes.txt.old", "my notes.md", "src/a.py", ".hidden"):
        (tmp_path / name).write_text(f"in {name}")
    return tmp_path


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("What does @notes.txt say?", ["notes.txt"]),
        ("Compare @notes.txt, (@src/a.py) and @./notes.txt.old.", ["notes.txt", "src/a.py", "./notes.txt.old"]),
        ('Read @"my notes.md".', ["my notes.md"]),
        ("@notes.txt", ["notes.txt"]),
        ("\n\t@notes.txt\n", ["notes.txt"]),
        ("me@notes.txt, @src, @src/, @nobody, @, @property, @~nobody/x, @\0", []),
    ],
)
def test_a_question_names_files_by_their_paths_behind_an_at_sign(folder: Path, question: str, paths: list[str]) -> None:
    found = attachments.attachments(question)
    assert [one.path for one in found] == paths
    assert all(question[one.start] == "@" and one.path in question[one.start : one.end] for one in found)
    assert [one.size for one in found] == [(folder / path).stat().st_size for path in paths]


def test_a_name_with_a_suffix_of_which_there_is_no_file_is_missing(folder: Path) -> None:
    question = 'See @note.txt, @notes.txt, @"my note.md" (@src/b.py). me@web.de @pytest.mark @app.get @src/ @types/node'
    assert attachments.missing(question) == ["note.txt", "my note.md", "src/b.py"]
    (folder / "table.jsonl").touch()
    assert attachments.missing("@table.js") == [] != attachments.missing("@tables.js")


def test_files_follow_the_question_fenced_with_their_names_and_each_once(folder: Path) -> None:
    assert with_files("Is @notes.txt as @src/a.py or @notes.txt?") == (
        "Is notes.txt as src/a.py or notes.txt?\n\n"
        "notes.txt:\n```txt\nin notes.txt\n```\n\n"
        "src/a.py:\n```py\nin src/a.py\n```"
    )
    assert with_files("Ask @nobody") == "Ask @nobody"


def test_the_text_of_a_file_stays_as_it_is_and_no_fence_in_it_ends_it(folder: Path) -> None:
    (folder / "odd").write_bytes("\ufeff\ta  b\r\n````\r\n".encode())
    assert with_files("@odd") == "odd\n\nodd:\n`````\n\ta  b\r\n````\r\n`````"
    (folder / "empty").touch()
    assert with_files("@empty").endswith("empty:\n```\n```")


def test_a_home_directory_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert "in notes.txt" in with_files("@~/notes.txt")
    assert paths_from("~/no") == ["~/notes.txt", "~/notes.txt.old"]


def test_what_is_no_text_or_too_large_is_refused_in_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "picture.png").write_bytes(b"\x89PNG\xff")
    (folder / "zeros").write_bytes(b"a\0b")
    for name in ("picture.png", "zeros"):
        with pytest.raises(CannotAttach, match=f"^{name} cannot be sent: it is no text"):
            with_files(f"What is @{name}?")
    monkeypatch.setattr(attachments, "MOST_TEXT", 5)
    with pytest.raises(CannotAttach, match="it is larger than"):
        with_files("@notes.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / "notes.txt").chmod(0)
    with pytest.raises(CannotAttach, match=r"Permission denied. Without the @ before it, its name alone is sent."):
        with_files("@notes.txt")


@pytest.mark.parametrize(
    ("before_cursor", "path"),
    [("Why @no", "no"), ("@", ""), ('see @"my no', "my no"), ("(@src/", "src/")],
)
def test_a_path_is_completed_where_it_is_typed(before_cursor: str, path: str) -> None:
    found = begun(before_cursor)
    assert found is not None and found[1] == path and before_cursor.endswith(found[0])


@pytest.mark.parametrize("before_cursor", ["", "Why", "me@no", "@no ", '@"my notes.md"', "@no tes"])
def test_elsewhere_none_is(before_cursor: str) -> None:
    assert begun(before_cursor) is None


def test_completions_are_files_and_folders_in_order_and_hidden_ones_only_for_a_dot(folder: Path) -> None:
    assert paths_from("") == ["my notes.md", "notes.txt", "notes.txt.old", "src/"]
    assert paths_from("NOTES") == ["notes.txt", "notes.txt.old"]
    assert paths_from("notes.txt.old")[0] == "notes.txt.old"
    assert paths_from("src/") == ["src/a.py"]
    assert paths_from(".") == [".hidden"]
    assert paths_from(f"{folder}/no")[0] == f"{folder}/notes.txt"
    assert paths_from("nowhere/") == paths_from("notes.txt/") == paths_from("\0/") == []


def test_a_path_with_spaces_is_named_between_quotation_marks() -> None:
    assert (named("a.txt"), named("my a.txt"), named("my folder/")) == ("@a.txt", '@"my a.txt"', '@"my folder/')
    assert named("odd.") == '@"odd."'


def test_what_a_terminal_pastes_for_files_dropped_on_it_are_their_paths(folder: Path) -> None:
    notes, spaced = f"{folder}/notes.txt", f"{folder}/my notes.md"
    escaped, address = spaced.replace(" ", "\\ "), f"file://{spaced.replace(' ', '%20')}"
    for text in (spaced, f"'{spaced}'", f'"{spaced}" ', escaped, address, f"{address}\r\n"):
        assert dropped(text) == [spaced], text
    assert dropped(f"{notes} '{spaced}'") == dropped(f"{notes}\n{escaped}\n") == [notes, spaced]


@pytest.mark.parametrize(
    "text", ["", "notes.txt", "/nowhere/x", "/", "'", "/nowhere \\", "it's", '"a" "b"', "/a" * 9000]
)
def test_any_other_paste_is_text(folder: Path, text: str) -> None:
    assert dropped(text) == []
    assert dropped(f"{folder}/notes.txt is a file") == dropped(f"{folder}/src") == []
