"""What is copied is kept in a file."""

import stat
from pathlib import Path

from ladechat.screens.terminal.app_on_terminal import keep


def test_the_text_is_kept_as_it_is_and_for_its_user_alone(tmp_path: Path) -> None:
    text = "def f():\n\treturn '漢字 👩‍💻'\r\n"
    path = keep(text, tmp_path / "new")
    assert path is not None and path.read_bytes() == text.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_last_copy_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    keep("one", tmp_path)
    assert keep("two", tmp_path) == tmp_path / "copied.txt"
    assert [path.read_text() for path in tmp_path.iterdir()] == ["two"]


def test_half_a_character_does_not_stop_it(tmp_path: Path) -> None:
    path = keep("a\ud800b", tmp_path)
    assert path is not None and path.read_text() == "a?b"


def test_where_nothing_can_be_written_nothing_is_kept_and_nothing_breaks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert keep("text", tmp_path / "file") is None
