"""Recordings on the command line: where they go, and what is refused before anything starts."""

import errno
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from ladechat.session.recordings.recorder import Recorder, latest_recording
from ladechat.shell import cli
from tests.session.conversations import forbid


@pytest.fixture
def in_terminal(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Makes the commands believe in a terminal, and takes down what the app is started with."""
    calls: list[object] = []

    def run(*_: object, recorder: Recorder, **__: object) -> int:
        calls.append(recorder.path)
        recorder.stop()
        return 0

    monkeypatch.setattr("ladechat.app.run_chat", run)
    monkeypatch.setattr(cli, "in_terminal", lambda: True)
    monkeypatch.setattr("ladechat.checks.drawn_in_terminal", lambda: True)
    return calls


@pytest.mark.parametrize(
    ("arguments", "recorded"),
    [
        ([], False),
        (["--record"], True),
        (["--record", "--window", "7"], True),
        (["--window", "7", "--record"], True),
    ],
)
def test_a_recording_without_a_name_goes_to_the_data_folder(
    arguments: list[str], recorded: bool, in_terminal: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "default_path", lambda model: tmp_path / f"{model}.ladechat.jsonl")
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    assert in_terminal == [tmp_path / "demo.ladechat.jsonl" if recorded else None]


def test_a_recording_goes_where_it_is_told(in_terminal: list[object], tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    assert CliRunner().invoke(cli.app, ["--record", str(path)]).exit_code == 0
    assert in_terminal == [path]


def test_an_existing_file_is_not_overwritten_by_a_recording(in_terminal: list[object], tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("precious")
    result = CliRunner().invoke(cli.app, ["--record", str(path)])
    assert result.exit_code == 2 and "exists already" in result.stderr and result.stderr.count("\n") == 1
    assert path.read_text() == "precious" and in_terminal == []


def test_a_recording_that_cannot_be_written_is_refused_before_anything_starts(
    in_terminal: list[object], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(cli.app, ["--record", str(tmp_path / "file" / "talk.jsonl")])
    assert result.exit_code == 2 and "cannot be written" in result.stderr and result.stderr.count("\n") == 1
    assert in_terminal == []


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (None, "No such file"),
        (b"hello\n", "is not a recording"),
        (b'{"event":"header","format":"ladechat","version":"9.0"}\n', "9.0"),
    ],
)
def test_what_cannot_be_replayed_is_told_in_one_sentence(tmp_path: Path, content: bytes | None, named: str) -> None:
    path = tmp_path / "talk.jsonl"
    if content is not None:
        path.write_bytes(content)
    result = CliRunner().invoke(cli.app, ["replay", str(path)])
    assert result.exit_code == 2 and named in result.stderr and result.stderr.count("\n") == 1


def test_recordings_that_cannot_be_searched_are_not_said_to_be_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.session.recordings.recorder.user_data_path", lambda _: tmp_path)
    (tmp_path / "recordings").mkdir()
    forbid(tmp_path / "recordings", monkeypatch)
    result = CliRunner().invoke(cli.app, ["replay", str(tmp_path / "none")])
    assert f"{tmp_path / 'recordings'} cannot be read: Permission denied" in result.stderr
    assert "none yet" not in result.stderr


def test_a_replay_in_a_pipe_says_that_it_needs_a_terminal() -> None:
    golden = Path(__file__).parent / "session" / "golden-1.1.ladechat.jsonl"
    result = CliRunner().invoke(cli.app, ["replay", str(golden)])
    assert result.exit_code == 2 and "needs a terminal" in result.stderr


@pytest.mark.parametrize("made", [(), ("2026-01-02-100000-demo", "2026-02-01-090000-demo")], ids=["none", "two"])
def test_a_replay_of_nothing_says_what_to_give_and_where_recordings_are(
    made: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ladechat.session.recordings.recorder.user_data_path", lambda _: tmp_path)
    (tmp_path / "recordings").mkdir()
    for name in made:
        (tmp_path / "recordings" / f"{name}.ladechat.jsonl").touch()
    result = CliRunner().invoke(cli.app, ["replay"])
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
    assert "ladechat replay talk.ladechat.jsonl" in result.stderr and str(tmp_path / "recordings") in result.stderr
    assert all(name not in result.stderr for name in made[:-1])
    assert (f"{made[-1]}.ladechat.jsonl" if made else "F7") in result.stderr


def test_a_folder_that_cannot_be_read_is_one_without_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "glob", refuse)
    assert latest_recording(tmp_path) is None
